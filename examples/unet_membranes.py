"""A U-Net of MONAI finds membranes in electron micrographs; the skip stays at home.

python examples/unet_membranes.py    (needs monai, and em-membranes in LIGHTSPLIT_DATA)
"""

from functools import partial

import numpy as np
import torch
from monai.losses import DiceCELoss
from monai.networks.nets import BasicUNet
from PIL import Image

import lightsplit
from lightsplit.data.folder import data_folder

torch.manual_seed(0)
folder = data_folder(None) / "em-membranes"
read = [[np.array(Image.open(file)) for file in sorted((folder / kind).iterdir())]
        for kind in ("image", "label")]  # fmt: skip
images = torch.tensor(np.stack(read[0]))[:, None] / 255
labels = (torch.tensor(np.stack(read[1]))[:, None] < 128).float()  # membranes
network = BasicUNet(2, 1, 1, features=(16, 16, 32, 64, 64, 16))
cut = {"head_until": "conv_0", "tail_from": "upcat_1"}
cut |= {"example": torch.zeros(4, 1, 128, 128), "wire": "bf16"}
adam = partial(torch.optim.Adam, lr=1e-3)
server = lightsplit.host(network, optimizer=adam, **cut)
model = lightsplit.connect(network, server=server, **cut)
optimizer, loss_of = adam(model.parameters()), DiceCELoss(sigmoid=True)
for _ in range(60):
    chosen, top, left = torch.randint(25, (4,)), *torch.randint(384, (2,)).tolist()
    window = (chosen, slice(None), slice(top, top + 128), slice(left, left + 128))
    loss = loss_of(model(images[window]), labels[window])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
mask, found = labels[25:, :, :128, :128], model.eval()(images[25:29, :, :128, :128]) > 0
dice = 2 * (found * mask[:4]).sum() / (found.sum() + mask[:4].sum())
print(f"loss {loss.item():.3f}, Dice on images it has not seen {dice.item():.3f}")

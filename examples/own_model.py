"""Your own model and loaders, three data owners, every byte counted.

    python examples/own_model.py

First asks where the model can be cut, then trains it with one head that travels from
owner to owner (shared heads), and gives the plain model back.
"""

from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

from lightsplit import (
    ByteMeter,
    Client,
    ClientSide,
    Schedule,
    Server,
    ServerSide,
    Trainer,
    WeightedObjective,
    legal_cuts,
    make_codec,
    make_objective,
    merge,
    split,
    through,
)
from lightsplit.data import DATASETS, LoaderBatches


class Residual(nn.Module):
    """A block with a shortcut."""

    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, inputs):
        return torch.relu(inputs + self.norm(self.conv(inputs)))


class Network(nn.Module):
    """Two residual blocks and a classifier."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1)
        self.blocks = nn.Sequential(Residual(8), Residual(8))
        self.hidden = nn.Linear(512, 64)
        self.out = nn.Linear(64, 10)

    def forward(self, images):
        features = self.blocks(torch.relu(self.stem(images)))
        return self.out(torch.relu(self.hidden(features.flatten(1))))


def main():
    torch.manual_seed(0)
    digits = DATASETS.create("digits")
    train = TensorDataset(digits.train.images / 255, digits.train.labels)
    test = TensorDataset(digits.test.images / 255, digits.test.labels)
    owners = random_split(train, [479, 479, 479])
    loaders = [DataLoader(owner, batch_size=32, shuffle=True) for owner in owners]

    model = Network()
    example = torch.zeros(2, 1, 8, 8)  # shapes and types matter, numbers do not
    print("legal cuts:", ", ".join(legal_cuts(model, example=example)))
    parts = split(model, head_until="blocks.0", tail_from="out", example=example)
    codec = make_codec("lightsplit-f", shape=(8, 8, 8), ratio=4, projection="dct")

    adam = partial(torch.optim.Adam, lr=2e-3)
    meter = ByteMeter()
    server = Server(ServerSide(parts.backbone, codec, adam))
    compaction = WeightedObjective(make_objective("wcc"), 1e-3)
    side = ClientSide(parts.head, parts.tail, codec, adam, objectives=[compaction])
    clients = [
        Client(side, through(meter, server.handle), index=index) for index in range(3)
    ]
    batches = [
        LoaderBatches(loader, seed=0, client=index)
        for index, loader in enumerate(loaders)
    ]
    trainer = Trainer(
        clients,
        server,
        batches=batches,
        schedule=Schedule([len(source) for source in batches], epochs=5),
        meter=meter,
        test=DataLoader(test, 360),
    )
    for done in trainer.run():
        if done.evaluation:
            accuracy = done.evaluation.figures["accuracy"]
            print(f"epoch {done.turn.epoch + 1}: {accuracy:.2%}")
    print("bytes:", trainer.progress.bytes)
    print("the plain model again:", type(merge(parts)).__name__)


if __name__ == "__main__":
    main()

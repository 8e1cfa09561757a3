"""One end of a loop of one's own, as a user would write it: server or owner.

python loop.py server FOLDER ADDRESS
python loop.py owner FOLDER ADDRESS NAME STEPS
"""

import math
import signal
import sys
from functools import partial
from pathlib import Path

import torch
from torch import nn

import lightsplit

ADAM = partial(torch.optim.Adam, lr=0.01)


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 6),
        nn.ReLU(),
        nn.Linear(6, 6),
        nn.BatchNorm1d(6),
        nn.Dropout(0.3),
        nn.Linear(6, 3),
    )


CUT = {
    "head_until": "0",
    "tail_from": "5",
    "example": torch.zeros(4, 8),
    "clients": 2,
}


def serve(folder, address):
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))

    def watch(_loops, port):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "port").write_text(str(port))
        return not stopped

    host = lightsplit.host(network(), optimizer=ADAM, **CUT)
    host.serve(address, folder, watch=watch, save_every=7, step_timeout_seconds=2.0)


def limit(folder, name):
    """Return how many steps this owner may make for now."""
    file = folder / f"{name}.limit"
    return int(file.read_text()) if file.exists() else math.inf


def own(folder, address, name, steps):
    secret = lightsplit.Secret(len(name))
    model = lightsplit.connect(
        network(), server=address, name=name, secret=secret, give_up_seconds=600, **CUT
    )
    optimizer = ADAM(model.parameters())
    checkpoint = folder / f"{name}.pt"
    start = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        start = saved["step"]
    for step in range(start, steps):
        while step >= limit(folder, name):
            signal.sigtimedwait([], 0.01)
        generator = torch.Generator().manual_seed(1000 * len(name) + step)
        inputs = torch.rand(4, 8, generator=generator)
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        (folder / f"{name}.step").write_text(str(step + 1))
        if (step + 1) % 5 == 0:
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "step": step + 1,
            }
            torch.save(state, folder / f"{name}.tmp")
            (folder / f"{name}.tmp").replace(checkpoint)
    torch.save(model.state_dict(), folder / f"{name}.last")
    model.close()


if __name__ == "__main__":
    torch.set_num_threads(1)
    role, folder, address, *rest = sys.argv[1:]
    if role == "server":
        serve(Path(folder), address)
    else:
        own(Path(folder), address, rest[0], int(rest[1]))

"""Your own model and loaders over the network: one server, two data owners.

    python examples/network_own_model.py server
    python examples/network_own_model.py client alice      (in a second terminal)
    python examples/network_own_model.py client bob        (in a third)

On one machine this needs nothing else. With a folder ``pki`` made by ``lightsplit certs
pki --client alice --client bob`` all ends use mutual TLS; between machines they must.
"""

import sys
from functools import partial
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

from lightsplit import (
    Client,
    ClientSide,
    Secret,
    Server,
    ServerSide,
    make_codec,
    split,
)
from lightsplit.data import DATASETS, LoaderBatches
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.deployment.network import join, make_contract, serve
from lightsplit.runs.plan import RunPlan
from lightsplit.transports.credentials import TlsFiles

ADDRESS = "127.0.0.1:7443"
PKI = Path("pki")
RUN = Path("runs/own-model")  # the server's; remove it to begin anew
OWNERS = ["alice", "bob"]
ADAM = partial(torch.optim.Adam, lr=2e-3)


class Network(nn.Module):
    """A small convolutional classifier."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU())
        self.body = nn.Sequential(
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 64)
        )
        self.out = nn.Linear(64, 10)

    def forward(self, images):
        return self.out(torch.relu(self.body(self.stem(images))))


def make_parts():
    """Return what every end builds for itself; the contract shows any difference."""
    example = torch.zeros(2, 1, 8, 8)
    parts = split(Network(), head_until="stem", tail_from="out", example=example)
    codec = make_codec("lightsplit-f", shape=(8, 8, 8), ratio=4, projection="dct")
    contract = make_contract(
        parts,
        codec,
        example=example,
        clients=len(OWNERS),
        batch_size=32,
        heads="private",  # each owner keeps its head; shared ones need a key as well
        turn_steps=0,  # a turn is a client's whole epoch
        codec_options={"ratio": 4, "projection": "dct"},
    )
    return parts, codec, contract


def run_server():
    parts, codec, contract = make_parts()
    server = Server(ServerSide(parts.backbone, codec, ADAM))
    tls = TlsFiles.of_server(PKI) if PKI.exists() else None
    run = serve(
        server,
        contract,
        RunPlan(turn_steps=0, epochs=5),
        Endpoint(ADDRESS, tls),
        RUN,
        names=OWNERS,
    )
    for line in run.progress.history:
        print(f"epoch {line['epoch']}: {line['test_accuracy']:.2%}")
    print("bytes:", run.progress.bytes)


def run_client(name):
    folder = RUN.parent / f"own-model-{name}"
    secret = Secret.kept(folder / "secret")  # the server cannot redraw our numbers
    with secret.scope("model"):
        parts, codec, contract = make_parts()
    digits = DATASETS.create("digits")
    train = TensorDataset(digits.train.images / 255, digits.train.labels)
    test = TensorDataset(digits.test.images / 255, digits.test.labels)
    mine = Subset(train, range(OWNERS.index(name), len(train), len(OWNERS)))
    loader = DataLoader(mine, batch_size=32, shuffle=True)

    side = ClientSide(parts.head, parts.tail, codec, ADAM)
    client = Client(side, send=None, secret=secret)
    tls = TlsFiles.of_client(PKI, name) if PKI.exists() else None
    finished = join(
        client,
        contract,
        Endpoint(ADDRESS, tls),
        name=name,
        batches=lambda index: LoaderBatches(loader, seed=secret.value, client=index),
        options=JoinOptions(
            state_folder=folder,
            test=DataLoader(test, 360),
        ),
    )
    print(f"{name}: {client.steps} steps, ended by the {finished.reason}")


if __name__ == "__main__":
    if sys.argv[1:] == ["server"]:
        run_server()
    elif sys.argv[1:2] == ["client"] and sys.argv[2:] in [[one] for one in OWNERS]:
        run_client(sys.argv[2])
    else:
        sys.exit(__doc__)

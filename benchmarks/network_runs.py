"""A run that is measured: what both ends of it are built from."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lightsplit import ClientSide, Server, ServerSide, SplitModel, make_codec
from lightsplit.codecs import Codec
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.deployment.network import join, make_contract
from lightsplit.models import MODELS
from lightsplit.protocol import Contract
from lightsplit.runs.plan import RunPlan
from lightsplit.runtime import BatchSource, Client, TurnReport
from lightsplit.transports.credentials import TlsFiles

BATCH = 64
ADAM = partial(torch.optim.Adam, lr=1e-3)
Pace = Callable[[Callable[[], object], int], None]


@dataclass(frozen=True)
class Run:
    """The settings of one run; they travel to the child processes as JSON.

    Attributes:
        model: "resnet18", or "nothing": three identities, without weights.
        steps: of all clients together.
        turn_steps: of one turn; 0 is one turn for all steps.
        values: of one sample, for the model that does nothing.
        codec: name and options.
        clients: how many are connected.
        threads: of torch, at either end.
    """

    model: str
    steps: int
    turn_steps: int = 0
    values: int = 0
    codec: dict[str, Any] = field(default_factory=lambda: {"name": "raw"})
    clients: int = 1
    threads: int = 2

    def to_json(self) -> str:
        """Return the run as one argument of a command."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the run that ``to_json`` wrote."""
        return cls(**json.loads(text))

    @property
    def plan(self) -> RunPlan:
        """One epoch that no client comes to the end of: nothing is saved between."""
        return RunPlan(
            turn_steps=self.turn_steps, max_steps=self.steps, step_timeout_seconds=600
        )

    @property
    def names(self) -> list[str]:
        """The clients, as their certificates call them."""
        return [f"client-{index}" for index in range(self.clients)]


class Ends(NamedTuple):
    """Both ends of a run before they are connected."""

    server: Server
    side: ClientSide
    contract: Contract


class Paced(Client):
    """A client whose turns are taken by ``beat``, so that steps can be timed."""

    beat: Pace

    def run_turn(self, batches: BatchSource, steps: int) -> TurnReport:
        """Let ``beat`` take the steps of a turn, each of them when it likes."""
        inputs, labels = batches.batch(0)
        if steps:  # the last turn is for an evaluation, and there is no test set
            self.beat(lambda: self.step(inputs, labels), steps)
        return TurnReport(steps, steps * len(labels), 0.0)


class SameBatch:
    """One batch for every step."""

    def __init__(self, run: Run) -> None:
        shape = (3, 32, 32) if run.model == "resnet18" else (run.values,)
        self._batch = torch.rand(BATCH, *shape), torch.randint(10, (BATCH,))
        self._length = run.steps

    def __len__(self) -> int:
        return self._length

    def batch(self, _step: int) -> tuple[Tensor, Tensor]:
        """Return inputs and labels."""
        return self._batch


def make_ends(run: Run) -> Ends:
    """Return a server and a client side that fit each other."""
    torch.set_num_threads(run.threads)
    parts, codec, shape = _parts(run)
    contract = make_contract(
        parts,
        codec,
        example=torch.zeros(1, *shape),
        clients=run.clients,
        batch_size=BATCH,
        heads="private",  # no side travels: what is measured is steps
        turn_steps=run.turn_steps,
    )
    server = Server(ServerSide(parts.backbone, codec, ADAM))
    return Ends(server, ClientSide(parts.head, parts.tail, codec, ADAM), contract)


def make_client(run: Run, side: ClientSide, pace: Pace | None = None) -> Paced:
    """Return a client that is not connected yet."""
    loss = cross_entropy if run.model == "resnet18" else _no_loss
    client = Paced(side, _not_connected, loss=loss)
    if pace is not None:
        client.beat = pace
    return client


def take_part(
    client: Paced, contract: Contract, batches: SameBatch, name: str, line: "Line"
) -> None:
    """Join the run and take the turns of ``client`` to its end."""
    join(
        client,
        contract,
        Endpoint(line.address, TlsFiles.of_client(line.certs, name)),
        name=name,
        batches=lambda _index: batches,
        options=JoinOptions(reports=False, give_up_seconds=30.0),
    )


class Line(NamedTuple):
    """Where a server listens and where the certificates for it are."""

    address: str
    certs: Path


def _parts(run: Run) -> tuple[SplitModel, Codec, tuple[int, ...]]:
    options = dict(run.codec)
    name = options.pop("name")
    if run.model == "resnet18":
        zoo = MODELS.create("resnet18", cut="l2")
        return zoo.split(), make_codec(name, shape=(64, 8, 8), **options), (3, 32, 32)
    parts = SplitModel.by_hand(nn.Identity(), nn.Identity(), nn.Identity())
    return parts, make_codec(name, shape=(run.values,), **options), (run.values,)


def _no_loss(logits: Tensor, _labels: Tensor) -> Tensor:
    return logits.sum()


def _not_connected(_request: object) -> Any:
    raise RuntimeError("not connected")

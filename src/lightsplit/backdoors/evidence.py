"""What the server has seen of each client: means over the messages it handles anyway.

    CodeMessage ──► server ──► OutputMessage        code, output: sums over samples
    OutputGradient ──► server ──► CodeGradient      gradient: the backbone's, summed

``EvidenceCollector`` stands in front of the server as a mod. It keeps one vector per
client and kind, and only of the kinds that a detector needs; nothing in it depends on
how long the run is. Evaluation leaves no evidence, nor does a step that is broken off.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from lightsplit.codecs import Codec
from lightsplit.errors import ConfigError
from lightsplit.formats import Stamp, WireFormats
from lightsplit.protocol import (
    CodeMessage,
    Contract,
    OutputMessage,
    Reply,
    Request,
)

KINDS = ("code", "output", "gradient", "weights")


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a verdict on one client rests on; only what the detector needs is there.

    Attributes:
        client: whose it is.
        code: mean of its codes (k,).
        output: mean of the backbone's outputs for it.
        gradient: mean over its steps of the backbone's gradient: where it pulls.
        weights: the backbone before and after a turn of this client.
    """

    client: int
    code: Tensor | None = None
    output: Tensor | None = None
    gradient: Tensor | None = None
    weights: tuple[Tensor, Tensor] | None = None

    def vector(self, kind: str) -> Tensor:
        """Return the code, output or gradient, which must be there."""
        found: Tensor | None = getattr(self, kind)
        if found is None:
            raise ConfigError(f"no {kind} was collected of client {self.client}")
        return found


@dataclass(frozen=True, eq=False)
class MessageReading:
    """How codes and outputs are read, whatever they were written as.

    Attributes:
        codec: at the front cut.
        output_codec: at the back cut; None where outputs travel whole.
        formats: how numbers are written.
    """

    codec: Codec
    output_codec: Codec | None = None
    formats: WireFormats = field(default_factory=WireFormats)

    def code(self, message: CodeMessage) -> Tensor:
        """Return a row per sample; a code with side information is laid out first."""
        stamp = Stamp(message.kind, message.client, message.step, message.is_training)
        plain = self.codec.layout(len(message.code.values))
        code = self.formats.read(stamp, message.code, plain)
        tensor: Tensor = self.codec.decoder(code) if code.side else code.values
        return tensor

    def output(self, message: OutputMessage) -> Tensor:
        """Return a row per sample."""
        stamp = Stamp(message.kind, message.client, message.step)
        rows = len(message.output.values)
        plain = None if self.output_codec is None else self.output_codec.layout(rows)
        return self.formats.read(stamp, message.output, plain).values


class EvidenceCollector:
    """A mod that adds up what it sees of each client until it is cleared."""

    def __init__(
        self, needs: Iterable[str], reading: MessageReading, backbone: nn.Module
    ) -> None:
        self._needs = frozenset(needs)
        self._reading = reading
        self._backbone = backbone
        self._sums: dict[str, Tensor] = {}  # "code.3", and "code.3.rows" beside it
        self._open: dict[str, Tensor] = {}  # of a step that is not done yet

    def __call__(
        self, request: Request, call_next: Callable[[Request], Reply]
    ) -> Reply:
        """Answer as the server does and keep what is needed of it."""
        reply = call_next(request)
        if isinstance(request, CodeMessage):
            if not request.is_training:
                return reply
            self._open = self._seen_in(request)
        if isinstance(reply, OutputMessage):
            if "output" in self._needs:
                self._open["output"] = self._reading.output(reply)
            return reply
        if "gradient" in self._needs:
            self._open["gradient"] = flat_gradient(self._backbone)[None]
        for kind in self._needs & self._open.keys():
            self._add(kind, request.client, self._open[kind])
        self._open = {}
        return reply

    def window(self) -> list[Evidence]:
        """Return the evidence since the last clearing, in the order of the clients."""
        clients = {int(key.split(".")[1]) for key in self._sums}
        return [self._of(client) for client in sorted(clients)]

    def clear(self) -> None:
        """Begin anew."""
        self._sums = {}

    def state(self) -> dict[str, Tensor]:
        """Return everything that was added up, for a checkpoint."""
        return dict(self._sums)

    def load(self, state: dict[str, Tensor]) -> None:
        """Go on from what ``state`` returned."""
        self._sums = dict(state)

    def _seen_in(self, request: CodeMessage) -> dict[str, Tensor]:
        return {"code": self._reading.code(request)} if "code" in self._needs else {}

    def _add(self, kind: str, client: int, rows: Tensor) -> None:
        key = f"{kind}.{client}"
        added = rows.detach().to("cpu", torch.float64).flatten(1).sum(0)
        count = torch.tensor(len(rows), dtype=torch.int64)
        self._sums[key] = self._sums.get(key, 0) + added
        self._sums[f"{key}.rows"] = self._sums.get(f"{key}.rows", 0) + count

    def _of(self, client: int) -> Evidence:
        def mean(kind: str) -> Tensor | None:
            key = f"{kind}.{client}"
            if key not in self._sums:
                return None
            return self._sums[key] / self._sums[f"{key}.rows"]

        return Evidence(client, mean("code"), mean("output"), mean("gradient"))


def check_collectable(
    needs: Iterable[str], contract: Contract, reading: MessageReading
) -> None:
    """Refuse evidence that the run's messages do not hold."""
    read = {"code": reading.codec, "output": reading.output_codec}
    for kind in needs:
        if kind == "output" and contract.topology == "vanilla":
            raise ConfigError("in the vanilla topology no output is sent to judge by")
        codec = read.get(kind)
        if codec is not None and not codec.is_sample_wise:
            raise ConfigError(f"codec {codec.name!r} mixes samples: no mean {kind}")


def flat_weights(module: nn.Module) -> Tensor:
    """Return a copy of the trainable parameters as one vector, on the CPU."""
    values = [p.detach().flatten() for p in _trainable(module)]
    return torch.cat(values).to("cpu", copy=True)


def flat_gradient(module: nn.Module) -> Tensor:
    """Return the gradients of the trainable parameters as one vector."""
    return torch.cat(
        [
            (torch.zeros_like(p) if p.grad is None else p.grad).flatten()
            for p in _trainable(module)
        ]
    )


def _trainable(module: nn.Module) -> list[nn.Parameter]:
    found = [p for p in module.parameters() if p.requires_grad]
    if not found:
        raise ConfigError("the backbone is frozen: clients leave no trace in it")
    return found

"""Evidence about each client: means over the messages that the server handles anyway.

    CodeMessage ──► server ──► OutputMessage        code, output: sums over samples
    OutputGradient ──► server ──► CodeGradient      gradient: the backbone's, summed

``EvidenceCollector`` is a mod in front of the server. It keeps one vector per client
and kind, only of the kinds that a detector needs, and a sketch of their noise
(``step_noise.py``), so its size does not grow with the run. Neither evaluation nor an
interrupted step leaves evidence.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from lightsplit.backdoors.step_noise import Noise, StepNoise
from lightsplit.errors import ConfigError
from lightsplit.protocol import (
    CodeMessage,
    Contract,
    OutputMessage,
    Reply,
    Request,
    Wire,
)

KINDS = ("code", "output", "gradient", "weights", "noise")
_WITH_NOISE = ("code", "output")


@dataclass(frozen=True, eq=False)
class Evidence:
    """The basis of a verdict on one client; fields that no detector needs are None.

    Attributes:
        client: the client it is about.
        code: mean of its codes (k,).
        output: mean of the backbone's outputs for it.
        gradient: mean over its steps of the backbone's gradient.
        weights: the backbone before and after a turn of this client.
        noise: by kind of vector, how much the steps of one client differ; the same for
            every client of a window.
    """

    client: int
    code: Tensor | None = None
    output: Tensor | None = None
    gradient: Tensor | None = None
    weights: tuple[Tensor, Tensor] | None = None
    noise: Mapping[str, Noise] = field(default_factory=dict)

    def vector(self, kind: str) -> Tensor:
        """Return the code, output or gradient; raise if it was not collected."""
        found: Tensor | None = getattr(self, kind)
        if found is None:
            raise ConfigError(f"no {kind} was collected from client {self.client}")
        return found


class EvidenceCollector:
    """A mod that adds up evidence about each client until it is cleared."""

    def __init__(self, needs: Iterable[str], wire: Wire, backbone: nn.Module) -> None:
        self._needs = frozenset(needs)
        self._wire = wire
        self._backbone = backbone
        self._sums: dict[str, Tensor] = {}  # "code.3", and "code.3.rows" beside it
        self._open: dict[str, Tensor] = {}  # evidence of an incomplete step
        self._noise = StepNoise()

    def __call__(
        self, request: Request, call_next: Callable[[Request], Reply]
    ) -> Reply:
        """Return the server's reply and collect the evidence in the exchange."""
        reply = call_next(request)
        if isinstance(request, CodeMessage):
            if not request.is_training:
                return reply
            self._open = self._seen_in(request)
        if isinstance(reply, OutputMessage):
            if "output" in self._needs:
                self._open["output"] = self._wire.rows(reply)
            return reply
        if "gradient" in self._needs:
            self._open["gradient"] = flat_gradient(self._backbone)[None]
        for kind in self._needs & self._open.keys():
            self._add(kind, request.client, self._open[kind])
        self._open = {}
        return reply

    def window(self) -> list[Evidence]:
        """Return the evidence since the last ``clear``, sorted by client."""
        clients = {int(key.split(".")[1]) for key in self._sums}
        found = {kind: self._noise.of(kind) for kind in _WITH_NOISE}
        noise = {kind: one for kind, one in found.items() if one is not None}
        return [self._of(client, noise) for client in sorted(clients)]

    def clear(self) -> None:
        """Forget all evidence."""
        self._sums = {}
        self._noise.clear()

    def state(self) -> dict[str, Tensor]:
        """Return the sums, for a checkpoint."""
        return {**self._sums, **self._noise.state()}

    def load(self, state: dict[str, Tensor]) -> None:
        """Continue from the sums that ``state`` returned."""
        noise = StepNoise()
        noise.load(state)
        own = state.keys() - noise.state().keys()
        self._sums = {key: tensor for key, tensor in state.items() if key in own}
        self._noise = noise

    def _seen_in(self, request: CodeMessage) -> dict[str, Tensor]:
        return {"code": self._wire.rows(request)} if "code" in self._needs else {}

    def _add(self, kind: str, client: int, rows: Tensor) -> None:
        key = f"{kind}.{client}"
        added = rows.detach().to("cpu", torch.float64).flatten(1).sum(0)
        count = torch.tensor(len(rows), dtype=torch.int64)
        self._sums[key] = self._sums.get(key, 0) + added
        self._sums[f"{key}.rows"] = self._sums.get(f"{key}.rows", 0) + count
        if "noise" in self._needs and kind in _WITH_NOISE:
            self._noise.add(kind, client, added / len(rows))

    def _of(self, client: int, noise: Mapping[str, Noise]) -> Evidence:
        def mean(kind: str) -> Tensor | None:
            key = f"{kind}.{client}"
            if key not in self._sums:
                return None
            return self._sums[key] / self._sums[f"{key}.rows"]

        means = mean("code"), mean("output"), mean("gradient")
        return Evidence(client, *means, noise=noise)


def check_collectable(needs: Iterable[str], contract: Contract, wire: Wire) -> None:
    """Refuse kinds of evidence that the run's messages do not contain."""
    codecs = {"code": wire.codec, "output": wire.output_codec}
    for kind in needs:
        if kind == "output" and contract.topology == "vanilla":
            raise ConfigError(
                "the vanilla topology sends no output; choose a detector without it"
            )
        codec = codecs.get(kind)
        if codec is not None and not codec.is_sample_wise:
            raise ConfigError(
                f"codec {codec.name!r} mixes samples, so a client has no mean {kind}"
            )


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
        raise ConfigError("the backbone is frozen, so clients leave no gradient in it")
    return found

"""Whose running statistics the server's normalisation layers use.

    per-client   every client has statistics of its own, kept by the server
    shared       one running average over the batches of all clients
    batch        outside training too, every batch is normalised by itself
    frozen       the statistics of the first weights, in training too; none is updated

Private heads make activations that differ from client to client, and one average over
all of them fits none. A client has few steps, too: after 35 of them, 2.5 % of PyTorch's
start values (mean 0, variance 1) are still in an average with momentum 0.1, which is
more than the whole variance of a small activation. Statistics of one client therefore
begin with its first batch: batch k counts at least 1 / k (``begin_with_first_batch``).

A normalisation layer is a module with a true ``track_running_stats``, as PyTorch's
BatchNorm and InstanceNorm have. LayerNorm and GroupNorm keep no statistics.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lightsplit.errors import ConfigError, ProtocolError, RunError
from lightsplit.registry import unknown_name

KINDS = ("per-client", "shared", "batch", "frozen")
PREFIX = "statistics."
State = dict[str, Tensor]


class _Place(NamedTuple):
    path: str
    module: nn.Module
    name: str


class Statistics:
    """The running statistics of some modules, for any number of clients.

    Args:
        modules: with their first statistics.
        kind: one of KINDS.
    """

    def __init__(self, modules: nn.Module, kind: str = "shared") -> None:
        if kind not in KINDS:
            raise ConfigError(unknown_name("kind of statistics", kind, list(KINDS)))
        self.kind = kind
        self._layers = _layers(modules)
        self._places = [
            _Place(f"{path}.{name}", module, name)
            for path, module in self._layers
            for name, _ in module.named_buffers(recurse=False)
        ]
        if kind == "per-client":
            begin_with_first_batch(modules)
        self._first = self._current()
        self._of_client: dict[int, State] = {}

    def switch_to(self, client: int, *, is_training: bool = False) -> None:
        """Use the statistics of ``client``; a new client begins with the first ones."""
        if self.kind != "per-client":
            return
        if is_training and client not in self._of_client:
            self._of_client[client] = _copied(self._first)
        self._use(self._of_client.get(client, self._first))

    def set_modes(self) -> None:
        """Put the layers into the mode of this kind, after all modules got theirs."""
        if self.kind in ("batch", "frozen"):
            for _, layer in self._layers:
                layer.train(self.kind == "batch")

    @contextmanager
    def unchanged(self, samples: int) -> Iterator[None]:
        """Run the block outside training, and leave every statistic as it is.

        A block that normalises ``samples`` by themselves works on copies, because an
        open step may need the originals.
        """
        if self.kind != "batch":
            yield
            return
        if samples < 2:
            raise ProtocolError(
                "batch statistics need at least 2 samples to predict, got 1; predict "
                "more samples at a time, or choose other statistics"
            )
        kept = self._current()
        self._use(_copied(kept))
        try:
            yield
        finally:
            self._use(kept)

    def state(self) -> State:
        """Return the statistics of the modules and those of every client."""
        if self.kind != "per-client":
            return {}
        of_clients = {
            f"{PREFIX}{client}.{path}": tensor
            for client, kept in sorted(self._of_client.items())
            if self._has_changed(kept)
            for path, tensor in kept.items()
        }
        return {**self._first, **of_clients}

    def before_load(self) -> None:
        """Bring the first statistics into the modules, where weights are loaded."""
        self._use(self._first)

    def load(self, state: State) -> None:
        """Load the clients' part of a state that ``state()`` returned."""
        found: dict[int, State] = {}
        for key, tensor in state.items():
            client, _, path = key.removeprefix(PREFIX).partition(".")
            kept = found.setdefault(_number(client, key), _copied(self._first))
            if path not in kept or kept[path].shape != tensor.shape:
                raise RunError(f"the state has statistics that fit no layer: {key}")
            kept[path].copy_(tensor)
        if found and self.kind != "per-client":
            raise RunError(
                f"the state has statistics of every client, expected {self.kind}"
            )
        self._of_client = found

    def _has_changed(self, kept: State) -> bool:
        """Return whether a client has trained; an undone step leaves no trace."""
        return any(not torch.equal(kept[path], self._first[path]) for path in kept)

    def _current(self) -> State:
        return {path: getattr(module, name) for path, module, name in self._places}

    def _use(self, kept: State) -> None:
        for path, module, name in self._places:
            setattr(module, name, kept[path])


def begin_with_first_batch(modules: nn.Module) -> None:
    """Let running averages forget their start values with the first batch."""
    for _, layer in _layers(modules):
        counter = getattr(layer, "num_batches_tracked", None)
        usual = getattr(layer, "momentum", None)  # None is a plain mean of all batches
        if counter is not None and usual is not None:
            layer.register_forward_pre_hook(partial(_weigh_batch, usual))


def _weigh_batch(usual: float, layer: nn.Module, _inputs: object) -> None:
    seen = layer.num_batches_tracked
    if layer.training and isinstance(seen, Tensor) and not seen.is_meta:
        layer.momentum = max(usual, 1 / (int(seen) + 1))  # type: ignore[assignment]


def _layers(modules: nn.Module) -> list[tuple[str, nn.Module]]:
    return [
        (path, module)
        for path, module in modules.named_modules()
        if getattr(module, "track_running_stats", False)
    ]


def _copied(kept: State) -> State:
    return {path: tensor.clone() for path, tensor in kept.items()}


def _number(text: str, key: str) -> int:
    if not text.isdecimal():
        raise RunError(f"the state has statistics of no client: {key}")
    return int(text)

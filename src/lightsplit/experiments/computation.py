"""What a step costs each side: parameters, operations and memory, per codec.

    client: head · encoder ┄┄► decoder · backbone :server ┄┄► tail :client

One tiny batch goes forward through the real modules. A hook on every convolution, dense
layer and projection writes down its operations (a multiplication and an addition are
two); backward they come once for the weights, if those are trained, and once for the
input, if something before it is. Normalisation, pooling and activations are left out,
as in torch's own counter, with which this agrees. What autograd keeps is counted as it
is kept.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from lightsplit.codecs import Projection
from lightsplit.experiments import pieces
from lightsplit.experiments.config import FACTS, Experiment
from lightsplit.experiments.cuts import make_cuts
from lightsplit.runtime import ClientSide, ServerSide, Side

_BATCH = 2  # BatchNorm cannot train on a single sample


@dataclass
class SideCost:
    """What a step costs one side.

    Attributes:
        parameters: trained or frozen.
        forward_flops, backward_flops: per sample.
        held_bytes: weights, running statistics and projections.
        training_bytes: gradients and the optimizer's slots.
        sample_bytes: what autograd keeps of each sample from forward to backward.
    """

    parameters: int = 0
    forward_flops: int = 0
    backward_flops: int = 0
    held_bytes: int = 0
    training_bytes: int = 0
    sample_bytes: int = 0


@dataclass
class Computation:
    """The cost of a step on both sides, and of what the codec adds to them."""

    client: SideCost = field(default_factory=SideCost)
    server: SideCost = field(default_factory=SideCost)
    encoder: SideCost = field(default_factory=SideCost)
    decoder: SideCost = field(default_factory=SideCost)


def measure_computation(experiment: Experiment) -> Computation:
    """Return what a step of ``experiment`` costs, by one batch of two images."""
    cuts = make_cuts(experiment, pieces.load_parts(experiment))
    client = pieces.make_client_side(experiment, cuts)
    server = pieces.make_server(experiment, cuts).side
    cost = Computation()
    shape = FACTS[experiment.dataset][0]
    _run(cost, client, server, torch.zeros(_BATCH, *shape, device=_device(client)))
    for side, total in ((client, cost.client), (server, cost.server)):
        _add_modules(total, side.modules)
        total.training_bytes = _training_bytes(side)
    _add_modules(cost.encoder, cuts.codec.encoder)
    _add_modules(cost.decoder, cuts.codec.decoder)
    return cost


def _run(
    cost: Computation, client: ClientSide, server: ServerSide, inputs: Tensor
) -> None:
    """Take one batch through both sides and count."""
    client.set_training(True)
    server.set_training(True)
    encoder, decoder = client.codec.encoder, client.codec.decoder
    with (
        _hooked(client.modules, cost.client),
        _hooked(server.modules, cost.server),
        _hooked(encoder, cost.encoder),
        _hooked(decoder, cost.decoder),
    ):
        with _kept(client, cost.client):
            code = client.encode(inputs)
        received = code._replace(values=code.values.detach().requires_grad_())
        with _kept(server, cost.server):
            output = server.forward(received)
        if client.has_tail:
            leaf = output.values.detach().requires_grad_()
            with _kept(client, cost.client):
                client.decode(output._replace(values=leaf))


@contextmanager
def _hooked(module: nn.Module, total: SideCost) -> Iterator[None]:
    """Add the operations of every layer in ``module`` that runs meanwhile."""

    def count(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        flops = _flops(layer, output)
        values = inputs[0] if isinstance(inputs[0], Tensor) else inputs[0].values
        is_trained = any(p.requires_grad for p in layer.parameters(recurse=False))
        total.forward_flops += flops
        total.backward_flops += flops * (is_trained + values.requires_grad)

    with ExitStack() as stack:
        for layer in module.modules():
            stack.callback(layer.register_forward_hook(count).remove)
        yield


def _flops(layer: nn.Module, output: Any) -> int:
    """Return the operations of one layer itself on one sample."""
    projection = getattr(layer, "projection", None)
    if isinstance(projection, Projection):
        return projection.flops
    if isinstance(layer, nn.Conv2d):
        return int(2 * layer.weight[0].numel() * output[0].numel())
    if isinstance(layer, nn.Linear):
        return int(2 * layer.in_features * output[0].numel())
    return 0


@contextmanager
def _kept(side: Side, total: SideCost) -> Iterator[None]:
    """Add the bytes per sample that autograd keeps meanwhile, weights left out."""
    own = {t.untyped_storage().data_ptr() for t in _tensors(side.modules)}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield
    total.sample_bytes += sum(kept.values()) // _BATCH


def _add_modules(total: SideCost, module: nn.Module) -> None:
    total.parameters = sum(p.numel() for p in module.parameters())
    total.held_bytes = sum(tensor.nbytes for tensor in _tensors(module))


def _tensors(module: nn.Module) -> list[Tensor]:
    return [*module.parameters(), *module.buffers()]


def _training_bytes(side: Side) -> int:
    """Return the bytes of gradients and slots, after an update by zero gradients."""
    trained = [p for p in side.modules.parameters() if p.requires_grad]
    for parameter in trained:
        parameter.grad = torch.zeros_like(parameter)
    side.update()
    slots = side.optimizer.state.values() if side.optimizer is not None else ()
    tensors = [t for slot in slots for t in slot.values() if isinstance(t, Tensor)]
    return sum(t.nbytes for t in (*trained, *tensors))


def _device(side: Side) -> torch.device:
    return next(side.modules.parameters()).device

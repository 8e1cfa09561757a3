"""The cost of a step on each side: parameters, operations and memory, per codec.

    client: head · encoder ┄┄► decoder · backbone :server ┄┄► tail :client

One tiny batch goes forward and backward through the real modules, and torch's own
counter counts the operations; a multiply-add counts as two. Normalisation, pooling,
activations and other elementwise work are left out. Where codes are sent once, a
client's step is one before the release: head, encoder and local tail. A step with the
server runs its tail alone. The counter does not know Fourier
transforms, so those of the ``dct`` projection are added. The memory that autograd keeps
is counted at the moment when autograd keeps it.
"""

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from lightsplit.codecs import Code
from lightsplit.errors import SplitError
from lightsplit.experiments import pieces
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.cuts import make_cuts
from lightsplit.nesting import repeated, to_device
from lightsplit.runtime import ClientSide, ServerSide, Side

_BATCH = 2  # BatchNorm cannot train on a single sample


@dataclass
class SideCost:
    """The cost of a step on one side.

    Attributes:
        parameters: number of parameters, trained or frozen.
        forward_flops, backward_flops: operations per sample.
        held_bytes: weights, running statistics and projections.
        training_bytes: gradients and optimizer state.
        sample_bytes: bytes per sample that autograd keeps from forward to backward.
    """

    parameters: int = 0
    forward_flops: int = 0
    backward_flops: int = 0
    held_bytes: int = 0
    training_bytes: int = 0
    sample_bytes: int = 0


@dataclass
class Computation:
    """The cost of a step on both sides, and the codec's part of it."""

    client: SideCost = field(default_factory=SideCost)
    server: SideCost = field(default_factory=SideCost)
    encoder: SideCost = field(default_factory=SideCost)
    decoder: SideCost = field(default_factory=SideCost)


def measure_computation(experiment: Experiment) -> Computation:
    """Return the cost of a step of ``experiment``, measured on two samples."""
    cuts = make_cuts(experiment, pieces.load_parts(experiment))
    client = pieces.make_client_side(experiment, cuts)
    server = pieces.make_server(experiment, cuts).side
    cost = Computation()
    inputs = experiment.make_task().example_inputs()
    _run(cost, client, server, to_device(repeated(inputs, _BATCH), _device(client)))
    working = [(client, cost.client), (server, cost.server)]
    for side, total in working if cuts.codec.is_sent else working[:1]:
        _add_modules(total, side.modules)
        total.training_bytes = _training_bytes(side)
    _add_modules(cost.encoder, cuts.codec.encoder)
    _add_modules(cost.decoder, cuts.codec.decoder)
    return cost


def client_cost(
    client: ClientSide, server: ServerSide, inputs: Any
) -> dict[str, int] | None:
    """Return a client's parameters and operations per sample of a training step.

    Copies of both sides run. Networks of objectives count if they change what is sent;
    an adversary that only takes part in the loss counts only in the parameters. The
    result is None if the sides cannot run one after the other, for example because the
    tail needs more than the output, or if their modules cannot be copied or counted:
    the record of a finished run must not fail because of one figure.
    """
    cost = Computation()
    try:
        client, server = copy.deepcopy((client, server))
        _run(cost, client, server, to_device(repeated(inputs, _BATCH), _device(client)))
    except (SplitError, RuntimeError, TypeError, ValueError, LookupError):
        return None
    except (AttributeError, NotImplementedError, StopIteration):  # of a user's modules
        return None
    _add_modules(cost.client, client.modules)
    flops = cost.client.forward_flops + cost.client.backward_flops
    return {"parameters": cost.client.parameters, "flops": flops}


def _run(
    cost: Computation, client: ClientSide, server: ServerSide, inputs: Any
) -> None:
    """Take one batch through both sides and count its cost."""
    client.set_training(True)
    server.set_training(True)
    _warm_up(client, server, inputs)
    if not client.codec.is_sent:
        with _forward(cost.client, client):
            alone = client.decode(client.encode(inputs))
        _count_backward(cost.client, alone)
        return
    with _forward(cost.client, client):
        code = client.encode(inputs)
    with _forward(cost.server, server):
        output = server.forward(_leaf(code))
    if "local_tail" in client.modules:  # head and encoder train in a step of their own
        with _forward(cost.client, client):
            alone = client.decide_alone(_leaf(code))
        _count_backward(cost.client, alone)
    elif client.has_tail:
        with _forward(cost.client, client):
            logits = client.decode(_leaf(output))
        _count_backward(cost.client, logits)
    _count_backward(cost.server, output.values)
    _count_backward(cost.client, code.values)
    activation: Tensor = client.modules["head"](inputs)
    given = activation.detach().requires_grad_(activation.requires_grad)
    _count_alone(cost.encoder, client.codec.encoder, given)
    _count_alone(cost.decoder, client.codec.decoder, _leaf(code))


def _warm_up(client: ClientSide, server: ServerSide, inputs: Any) -> None:
    """Run both sides once: the other party's modules find their shapes in this pass.

    That is not an operation of a step, but the counter would count it.
    """
    with torch.no_grad():
        code = client.encode(inputs)
        output = server.forward(code) if client.codec.is_sent else code
        if client.has_tail:
            client.decode(output)


def _leaf(code: Code) -> Code:
    """Return the code as its receiver has it: a leaf, where the gradient ends."""
    return code._replace(values=code.values.detach().requires_grad_())


@contextmanager
def _forward(total: SideCost, side: Side) -> Iterator[None]:
    """Add the operations of a forward pass and the memory that autograd keeps."""
    with _counter() as counter, _kept(total, side):
        yield
    total.forward_flops += counter.get_total_flops() // _BATCH


def _count_backward(total: SideCost, result: Tensor) -> None:
    """Add the operations of the backward pass from ``result``."""
    if result.requires_grad:
        with _counter() as counter:
            result.backward(torch.ones_like(result))  # type: ignore[no-untyped-call]
        total.backward_flops += counter.get_total_flops() // _BATCH


def _count_alone(total: SideCost, module: nn.Module, given: Tensor | Code) -> None:
    """Add the operations of ``module`` alone, forward and backward."""
    with _counter() as counter:
        made = module(given)
    total.forward_flops += counter.get_total_flops() // _BATCH
    _count_backward(total, made.values if isinstance(made, Code) else made)


def _counter() -> FlopCounterMode:
    return FlopCounterMode(display=False, custom_mapping=_FOURIER)


def _transform_flops(signals: tuple[int, ...]) -> int:
    """Return the operations of a fast Fourier transform of the real ``signals``."""
    return round(2.5 * math.prod(signals) * math.log2(signals[-1]))


_FOURIER: dict[Any, Any] = {
    torch.ops.aten._fft_r2c: lambda signals, *_, **__: _transform_flops(signals),
    torch.ops.aten._fft_c2r: lambda *_, out_shape, **__: _transform_flops(out_shape),
}


@contextmanager
def _kept(total: SideCost, side: Side) -> Iterator[None]:
    """Add the bytes per sample that autograd keeps in the block, except weights."""
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
    """Return the bytes of gradients and optimizer state, after an all-zero update."""
    trained = [p for p in side.modules.parameters() if p.requires_grad]
    for parameter in trained:
        parameter.grad = torch.zeros_like(parameter)
    side.update()
    slots = side.optimizer.state.values() if side.optimizer is not None else ()
    tensors = [t for slot in slots for t in slot.values() if isinstance(t, Tensor)]
    return sum(t.nbytes for t in (*trained, *tensors))


def _device(side: Side) -> torch.device:
    return next(side.modules.parameters()).device

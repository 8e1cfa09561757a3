"""Backward passes from a cut, straight to autograd's engine.

``Tensor.backward`` asks first whether its tensors are symbolic, nested or somebody's
own class, which two times a step takes more than the whole pass of a small model: over
a network 0.15 ms, from cold. What comes here has been checked. Pipeline-parallel
trainers call the engine like this too; it has no public name.
"""

import torch
from torch import Tensor
from torch.autograd import Variable

_run = Variable._execution_engine.run_backward


def backward(output: Tensor, gradient: Tensor | None = None) -> None:
    """Do what ``output.backward(gradient)`` does.

    Args:
        output: where the pass begins.
        gradient: of its shape; None is one, for a loss.
    """
    if gradient is None and output.numel() == 1:
        gradient = torch.ones_like(output)
    if gradient is None or not output.is_cpu:  # an error, or a pass in other threads
        output.backward(gradient)  # type: ignore[no-untyped-call]
        return
    _run(
        (output,),
        (gradient,),
        keep_graph=False,
        create_graph=False,
        inputs=(),
        allow_unreachable=True,
        accumulate_grad=True,
    )


def gradient_at(values: Tensor) -> Tensor:
    """Return what a backward pass left at a leaf, zeros where it did not reach it."""
    return torch.zeros_like(values) if values.grad is None else values.grad

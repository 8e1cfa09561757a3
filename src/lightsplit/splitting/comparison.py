"""The last step of a cut: the parts must return what the model returns.

The trace sees what Python asks torch for. Code that hands numbers on in another way, by
a library of its own for instance, is invisible to it. So the parts are run against the
model once, on the example, in evaluation mode.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from lightsplit.errors import SplitError
from lightsplit.nesting import tensors_in
from lightsplit.splitting.arguments import call
from lightsplit.splitting.parts import SplitModel
from lightsplit.splitting.recording import does_not_fit, left_as_it_was
from lightsplit.splitting.running import companions_of, run_client


def refuse_difference(parts: SplitModel, example: Any) -> None:
    """Raise ``SplitError`` unless the parts return on the example what the model does.

    Nothing is changed by it. A model that has no weights yet is not compared.
    """
    whole = parts.whole
    if any(one.is_meta for one in chain(whole.parameters(), whole.buffers())):
        return
    expected = _outputs(parts, lambda: call(whole, example), does_not_fit)
    found = _outputs(parts, lambda: _run(parts, example), _fails)
    difference = _difference(found, expected)
    if difference:
        raise SplitError(
            "the parts do not return what the model returns on the example "
            f"({difference}): its forward pass hands numbers on in a way that no trace "
            "sees; give the parts by hand with SplitModel.by_hand(head, backbone, tail)"
        )


def _run(parts: SplitModel, example: Any) -> Any:
    shared = companions_of(parts.head, example)

    def exchange(activation: Tensor) -> Any:
        return parts.backbone(activation, *((shared,) if shared else ()))

    if parts.tail is None:
        return exchange(parts.head(example))
    return run_client(parts.head, parts.tail, exchange, example)


def _outputs(
    parts: SplitModel, run: Callable[[], Any], refused: Callable[..., SplitError]
) -> list[Tensor]:
    with _evaluating(parts):
        try:
            return [one.clone() for one in tensors_in(run())]
        except SplitError:
            raise
        except Exception as error:
            raise refused(error, mode="evaluation") from error


def _fails(error: Exception, mode: str) -> SplitError:
    detail = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return SplitError(f"the parts fail on the example in {mode} mode ({detail})")


@contextmanager
def _evaluating(parts: SplitModel) -> Iterator[None]:
    """Evaluate, with the same random numbers each time, and leave everything as is."""
    roots = (parts.whole, *parts.parts)
    with left_as_it_was(*roots), torch.no_grad():
        for root in roots:
            for module in root.modules():
                module.training = False
        yield


def _difference(found: list[Tensor], expected: list[Tensor]) -> str:
    """Return in words what differs; empty if nothing does."""
    if len(found) != len(expected):
        return f"the number of tensors is {len(found)} instead of {len(expected)}"
    for place, (ours, theirs) in enumerate(zip(found, expected, strict=True), start=1):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return (
                f"tensor {place} of the output is {_form(ours)} instead of "
                f"{_form(theirs)}"
            )
        if not _is_close(ours, theirs):
            return f"tensor {place} of the output has other numbers"
    return ""


def _is_close(ours: Tensor, theirs: Tensor) -> bool:
    """Return whether two tensors differ by no more than torch's tests allow."""
    try:
        torch.testing.assert_close(ours, theirs, equal_nan=True)
    except AssertionError:
        return False
    return True


def _form(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} of {tensor.dtype}"

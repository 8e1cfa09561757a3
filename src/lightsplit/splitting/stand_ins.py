"""A stand-in for a module that belongs to the other party.

It holds the module without its weights, on the ``meta`` device, and returns zeros of
the right shapes. Code that looks at attributes of the module finds them there. The
client's tail may fill a stand-in: then it is that module for as long.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lightsplit.errors import SplitError
from lightsplit.nesting import map_tensors, tensors_in
from lightsplit.splitting.arguments import Blank, replace_leaves

_PLAIN = (bool, int, float, str, type(None), torch.dtype, torch.device)


class StandIn(nn.Module):
    """Takes the place of ``module``.

    Args:
        module: the module to replace; its weights are not kept.
        path: its name, for messages.
        result: a result of the module with the forms of the tensors in it, for modules
            that do not run without numbers; None if it was never called.
        is_passed_on: whether only other stand-ins read the result. Then it is one
            repeated zero, which takes no memory and cannot be written to.
    """

    def __init__(
        self,
        module: nn.Module,
        path: str,
        result: tuple[Any, tuple[Blank, ...]] | None,
        *,
        is_passed_on: bool = False,
    ) -> None:
        super().__init__()
        hidden = vars(self)  # not among the submodules
        hidden["replaced"] = without_weights(module)
        hidden["filled"] = None
        self.path = path
        self.is_passed_on = is_passed_on
        self.result: Any = result[0] if result else None
        self.forms: tuple[Blank, ...] = result[1] if result else ()
        self.training = module.training
        self._known: dict[Any, Any] = {}
        self.needs_numbers = False  # whether the module did not run without them

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return zeros, or what the module returns that fills this place."""
        if self.filled is not None:
            return self.filled(*args, **kwargs)
        if not self.forms:
            raise SplitError(
                f"{self.path!r} belongs to the other side, or was not called when the "
                "model was split: split it with an example that calls it"
            )
        tensors = list(tensors_in((args, kwargs)))
        device = tensors[0].device if tensors else torch.device("cpu")
        floats = [one.dtype for one in tensors if one.is_floating_point()]

        def zeros(one: Tensor) -> Tensor:
            is_float = one.is_floating_point() and floats
            dtype = floats[0] if is_float else one.dtype
            if self.is_passed_on:
                return repeated_zero(one.shape, dtype, device)
            return torch.zeros(one.shape, dtype=dtype, device=device)

        return map_tensors(zeros, self._form(args, kwargs, tensors))

    def forget(self) -> None:
        """Run the module on ``meta`` at the next call, whatever was seen before."""
        self._known = {}

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the module that fills this place, or is replaced."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            hidden = vars(self)
            if "replaced" not in hidden:  # while a copy is made
                raise
            return getattr(hidden["filled"] or hidden["replaced"], name)

    def _form(self, args: Any, kwargs: Any, tensors: list[Tensor]) -> Any:
        """Return the result on ``meta``, from memory if the shapes were seen before."""
        key = _key((args, kwargs), is_training=self.training)
        if key is None or key not in self._known:
            try:
                found = _on_meta(self.replaced, args, kwargs)
            except Exception:  # noqa: BLE001  whatever it is, it needs numbers: go by the example
                found = self._like_example(tensors)
                self.needs_numbers = True
            if key is None:
                return found
            self._known[key] = found
        return self._known[key]

    def _like_example(self, tensors: list[Tensor]) -> Any:
        like = tensors[0] if tensors else torch.empty(0)
        rows = like.shape[0] if like.ndim else 1
        shapes = [(rows, *form.shape[1:]) if form.shape else () for form in self.forms]
        made = [
            torch.empty(shape, dtype=form.dtype, device="meta")
            for shape, form in zip(shapes, self.forms, strict=True)
        ]
        return replace_leaves(self.result, dict(enumerate(made)))


def repeated_zero(
    shape: Sequence[int], dtype: torch.dtype, device: torch.device
) -> Tensor:
    """Return zeros that take the memory of a single zero."""
    return torch.zeros((), dtype=dtype, device=device).expand(*shape)


def without_weights(module: nn.Module) -> nn.Module:
    """Return a copy of ``module`` on the meta device, without a copy of its weights."""
    memo: dict[int, Any] = {}
    for parameter in module.parameters():
        empty = nn.Parameter(parameter.detach().to("meta"), parameter.requires_grad)
        memo[id(parameter)] = empty
    for buffer in module.buffers():
        memo[id(buffer)] = buffer.detach().to("meta")
    return copy.deepcopy(module, memo)


def _on_meta(module: nn.Module, args: Any, kwargs: Any) -> Any:
    own = next((one.dtype for one in module.parameters()), None)

    def empty(one: Tensor) -> Tensor:
        dtype = own if own is not None and one.is_floating_point() else one.dtype
        return one.detach().to("meta", dtype)

    args, kwargs = map_tensors(empty, (args, kwargs))
    with torch.no_grad():
        return module(*args, **kwargs)


def _key(nest: Any, *, is_training: bool) -> Any:
    """Return what the form of a result depends on; None if that cannot be told."""
    if isinstance(nest, Tensor):
        is_known = all(isinstance(size, int) for size in nest.shape)
        # An exporter leaves sizes open.
        return (tuple(nest.shape), nest.dtype, is_training) if is_known else None
    if isinstance(nest, _PLAIN):
        return nest
    if isinstance(nest, dict):
        parts = [
            (name, _key(value, is_training=is_training)) for name, value in nest.items()
        ]
        return (
            None
            if any(k is None and nest[n] is not None for n, k in parts)
            else tuple(parts)
        )
    if isinstance(nest, tuple | list):
        keys = [_key(value, is_training=is_training) for value in nest]
        is_unknown = any(
            key is None and value is not None
            for key, value in zip(keys, nest, strict=True)
        )
        return None if is_unknown else tuple(keys)
    return None

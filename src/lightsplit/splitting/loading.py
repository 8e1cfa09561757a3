"""Building a model without weights, and loading one party's part of a checkpoint.

    with empty_weights():
        model = make_model()                      # parameters take no memory
    parts = split(model, …, example=batch)
    load_part([parts.head, parts.tail], "model.safetensors")     # at the client
    load_part([parts.backbone], "model.safetensors")             # at the server

Only the tensors of the given parts are read, so a party may have a file without those
of the other. Weights that parts share are loaded once and stay shared.
"""

import copy
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from lightsplit.errors import SplitError

_SHOWN = 3
_INDEX = "model.safetensors.index.json"
_FILE = "model.safetensors"


@contextmanager
def empty_weights() -> Iterator[None]:
    """Give every parameter that is made inside the block no memory.

    They are on the ``meta`` device. Buffers are as always: many are never saved.
    """

    def emptied(_: nn.Module, name: str, parameter: nn.Parameter | None) -> Any:  # noqa: ARG001
        if parameter is None or parameter.is_meta:
            return parameter
        return nn.Parameter(parameter.detach().to("meta"), parameter.requires_grad)

    handle = register_module_parameter_registration_hook(emptied)
    try:
        yield
    finally:
        handle.remove()


def with_zero_weights(model: nn.Module) -> nn.Module:
    """Return a copy of a model that runs, with zeros for the weights that are empty.

    They take no memory either, and the other weights are the model's own. A model that
    has all its weights is returned as it is.
    """
    own = {id(parameter): parameter for parameter in model.parameters()}
    loaded = [parameter for parameter in own.values() if not parameter.is_meta]
    if len(loaded) == len(own):
        return model
    device = loaded[0].device if loaded else torch.device("cpu")
    zeros = {
        key: nn.Parameter(
            torch.zeros((), dtype=one.dtype, device=device).expand(one.shape),
            requires_grad=False,
        )
        for key, one in own.items()
        if one.is_meta
    }
    return copy.deepcopy(model, own | zeros)


def load_part(
    parts: Sequence[nn.Module],
    path: str | Path,
    *,
    prefix: str = "",
    keep: Sequence[str] = (),
    device: torch.device | str = "cpu",
) -> int:
    """Load the parts' own tensors from a checkpoint and return their number.

    Args:
        parts: the parts of one party, together: they may share weights.
        path: a safetensors file, the index of several, or a folder with either.
        prefix: what the model's names have before those in the checkpoint, such as
            ``"bert."`` where it is of the encoder alone.
        keep: modules that keep the weights they have, such as a new classifier.
        device: to load onto.

    Raises:
        SplitError: the checkpoint lacks tensors of these parts, or their shapes differ;
            nothing was changed.
    """
    checkpoint = _Checkpoint(Path(path))
    wanted = [each for each in _tensors(parts) if not each.is_below(keep)]
    chosen = {each: each.found_in(checkpoint.files, prefix) for each in wanted}
    _refuse_missing(checkpoint.path, [one for one, name in chosen.items() if not name])
    loaded = [
        (each, checkpoint.read(name, each, torch.device(device)))
        for each, name in chosen.items()
    ]
    for each, tensor in loaded:
        each.put(tensor)
    return len(loaded)


def refuse_empty(*parts: nn.Module) -> None:
    """Refuse parts of one party that lack weights of their own."""
    missing = [one.names[0] for one in _tensors(parts) if one.tensor.is_meta]
    if missing:
        raise SplitError(
            f"expected this party's weights, got none for {_listed(missing)}: load "
            "them with load_part"
        )


@dataclass(frozen=True, eq=False)
class _Shared:
    """A parameter or buffer with its names in all parts."""

    tensor: Tensor
    names: tuple[str, ...]

    def is_below(self, paths: Iterable[str]) -> bool:
        return any(name.startswith(f"{path}.") for name in self.names for path in paths)

    def found_in(self, files: dict[str, Path], prefix: str) -> str:
        names = [name.removeprefix(prefix) for name in self.names]
        return next((name for name in names if name in files), "")

    def put(self, tensor: Tensor) -> None:
        """Give the content to everything that holds the tensor, the model included."""
        made = tensor
        if isinstance(self.tensor, nn.Parameter):
            made = nn.Parameter(tensor, self.tensor.requires_grad)
        torch.utils.swap_tensors(self.tensor, made)  # type: ignore[no-untyped-call]


def _tensors(parts: Sequence[nn.Module]) -> list[_Shared]:
    found: dict[int, _Shared] = {}
    for part in parts:
        for name, tensor in part.state_dict(keep_vars=True).items():
            known = found.get(id(tensor), _Shared(tensor, ()))
            found[id(tensor)] = _Shared(tensor, (*known.names, name))
    return list(found.values())


class _Checkpoint:
    """The names of tensors in one or several files, and their contents."""

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            path = path / (_INDEX if (path / _INDEX).is_file() else _FILE)
        self.path = path
        self.files = self._names()

    def _names(self) -> dict[str, Path]:
        if not self.path.is_file():
            raise SplitError(f"expected a safetensors checkpoint, {self.path} is none")
        try:
            if self.path.suffix == ".json":
                index = json.loads(self.path.read_text())["weight_map"]
                return {name: self.path.parent / file for name, file in index.items()}
            with safe_open(self.path, framework="pt") as file:
                return dict.fromkeys(file.keys(), self.path)
        except (SafetensorError, ValueError, KeyError, AttributeError) as error:
            raise SplitError(
                f"{self.path} is not a safetensors checkpoint: {error}"
            ) from error

    def read(self, name: str, wanted: _Shared, device: torch.device) -> Tensor:
        file = self.files[name]
        try:
            with safe_open(file, framework="pt") as opened:
                tensor: Tensor = opened.get_tensor(name)
        except (OSError, SafetensorError) as error:
            raise SplitError(f"{file} cannot be read: {error}") from error
        if tensor.shape != wanted.tensor.shape:
            raise SplitError(
                f"{file}: {name} is {tuple(tensor.shape)}, expected "
                f"{tuple(wanted.tensor.shape)}"
            )
        return tensor.to(device, wanted.tensor.dtype)


def _refuse_missing(path: Path, missing: list[_Shared]) -> None:
    if missing:
        names = _listed([each.names[0] for each in missing])
        raise SplitError(
            f"{path} lacks tensors of this party: {names}; give prefix= if the "
            "checkpoint has shorter names, or keep= for modules that are new"
        )


def _listed(names: list[str]) -> str:
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{rest}"

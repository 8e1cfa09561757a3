"""What every form has: terms for the contract, and checks with the file's name."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset, Subset

from lightsplit.data.base import limited_rows
from lightsplit.errors import ConfigError, DataError, MissingDataError
from lightsplit.truths import Truth


class Form:
    """What all owners of a task must agree on about their samples.

    A subclass is a frozen dataclass; its fields are the terms.
    """

    def terms(self) -> dict[str, Any]:
        """Return the fields as plain values, for the contract."""
        if not is_dataclass(self):
            raise ConfigError(f"{type(self).__name__} must be a dataclass")
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        plain = {
            name: _plain(value)
            for name, value in values.items()
            if not callable(value)  # a tokenizer is compared by nobody
        }
        return {"form": type(self).__name__, **plain}

    def truth(self) -> Truth | None:
        """Return what an attack is to find out about a sample, if the form knows."""
        return None


def _plain(value: Any) -> Any:
    """Return ``value`` as JSON would give it back."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def hold_out(
    dataset: Dataset[Any], share: float = 0.2, *, seed: int = 0
) -> tuple[Subset[Any], Subset[Any]]:
    """Return a training and a test set, the latter a random ``share`` of the samples.

    The same seed gives the same parts, so a resumed run sees the same samples.
    """
    count = len(dataset)  # type: ignore[arg-type]
    held = round(share * count)
    if not 0 < held < count:
        raise ConfigError(
            f"a share of {share:g} of {count} samples leaves nothing to "
            f"{'test on' if held <= 0 else 'train on'}; choose another share"
        )
    test = limited_rows(count, held, seed)
    mask = torch.ones(count, dtype=torch.bool)
    mask[test] = False
    train = mask.nonzero().flatten()
    return Subset(dataset, train.tolist()), Subset(dataset, test.tolist())


def found_folder(folder: Path | None) -> Path:
    """Return ``folder`` if it exists."""
    if folder is None:
        raise MissingDataError("expected a folder with your files; give it by --data")
    if not folder.is_dir():
        raise MissingDataError(f"there is no folder {folder}")
    return folder


def found_file(file: Path) -> Path:
    """Return ``file`` if it exists."""
    if not file.is_file():
        raise MissingDataError(f"there is no file {file}")
    return file


def class_index(label: str, classes: Sequence[str], place: str) -> int:
    """Return the number of a declared class; ``place`` is the file and line."""
    if label not in classes:
        raise DataError(
            f"{place}: the class {label!r} is not one of the task's classes, "
            f"{', '.join(classes)}"
        )
    return list(classes).index(label)


def normalised(values: Tensor, mean: Any, std: Any) -> Tensor:
    """Return ``(values - mean) / std``; the values themselves where both are None."""
    if mean is None and std is None:
        return values
    shape = (-1,) + (1,) * (values.ndim - 1)
    centre = torch.as_tensor(0.0 if mean is None else mean).reshape(shape)
    spread = torch.as_tensor(1.0 if std is None else std).reshape(shape)
    return (values - centre) / spread

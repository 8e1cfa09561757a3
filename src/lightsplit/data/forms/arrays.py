"""NPZ archives: one array of inputs and one of labels."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from lightsplit.data.forms.base import Form, found_file, normalised
from lightsplit.errors import ConfigError, DataError
from lightsplit.truths import ImageTruth, TableTruth, Truth


@dataclass(frozen=True)
class ArrayForm(Form):
    """Arrays of samples of one shape.

    Attributes:
        shape: of one sample. Images are (channels, height, width); arrays that end with
            the channels, or have none, are turned.
        classes: labels are 0 … ``classes`` - 1; None if labels are numbers.
        marks: a label is so many marks, each 0 or 1; None if it is not (multi-label).
        mean: subtracted from the inputs; bytes are first divided by 255.
        std: divides the difference.
    """

    shape: tuple[int, ...]
    classes: int | None = None
    mean: float | tuple[float, ...] | None = None
    std: float | tuple[float, ...] | None = None
    marks: int | None = None

    def __post_init__(self) -> None:
        if self.classes is not None and self.marks is not None:
            raise ConfigError("labels are classes or marks: give one of both")

    def truth(self) -> Truth | None:
        """Return images or rows, by the number of dimensions."""
        match self.shape:
            case (width,):
                return TableTruth.numbered(width)
            case (channels, height, width):
                return ImageTruth((channels, height, width), self.mean, self.std)
        return None

    def file(
        self, path: Path, *, inputs: str = "inputs", labels: str = "labels"
    ) -> "Arrays":
        """Return the samples of an archive; ``inputs`` and ``labels`` name arrays."""
        arrays = _arrays(path, (inputs, labels))
        values = self._turned(path, arrays[0])
        targets = self._labels(path, arrays[1])
        if len(values) != len(targets):
            raise DataError(f"{path}: {len(values)} inputs but {len(targets)} labels")
        return Arrays(self, values, targets)

    def unlabelled(self, path: Path, *, inputs: str = "inputs") -> "Inputs":
        """Return the samples of an archive without labels."""
        return Inputs(self, self._turned(path, _arrays(path, (inputs,))[0]))

    def _turned(self, path: Path, values: Any) -> Tensor:
        given = torch.from_numpy(np.ascontiguousarray(_numbers(path, values)))
        if tuple(given.shape[1:]) == self.shape:
            return given
        is_image = len(self.shape) == 3
        if is_image and given.ndim == 4 and _turns(given, self.shape):
            return given.permute(0, 3, 1, 2)
        if is_image and self.shape[0] == 1 and given.shape[1:] == self.shape[1:]:
            return given[:, None]
        raise DataError(
            f"{path}: expected samples of shape {self.shape}, "
            f"got {tuple(given.shape[1:])}"
        )

    def _labels(self, path: Path, values: Any) -> Tensor:
        numbers = _numbers(path, values)
        if self.marks is not None:
            return self._marks(path, numbers)
        if self.classes is None:
            return torch.from_numpy(np.asarray(numbers, dtype=np.float32))
        if np.size(numbers) != len(numbers):
            raise DataError(
                f"{path}: expected one class for each sample, got labels of shape "
                f"{np.shape(numbers)}; leave out classes in the task if there are more"
            )
        labels = torch.from_numpy(np.asarray(numbers).astype(np.int64).reshape(-1))
        if (labels.numpy() != np.reshape(numbers, -1)).any():
            raise DataError(f"{path}: labels are classes, but some are not whole")
        if len(labels) and (labels.min() < 0 or labels.max() >= self.classes):
            raise DataError(
                f"{path}: expected labels from 0 to {self.classes - 1}, got "
                f"{int(labels.min())} to {int(labels.max())}"
            )
        return labels

    def _marks(self, path: Path, values: Any) -> Tensor:
        if values.ndim != 2 or values.shape[1] != self.marks:
            raise DataError(
                f"{path}: expected {self.marks} marks for each sample, got labels of "
                f"shape {values.shape}"
            )
        if not np.isin(values, (0, 1)).all():
            raise DataError(f"{path}: expected marks of 0 and 1, got other numbers")
        return torch.from_numpy(values.astype(np.int64))


class Inputs(Dataset[Any]):
    """Samples without labels; bytes stay bytes until a sample is asked for."""

    def __init__(self, form: ArrayForm, inputs: Tensor) -> None:
        self._form = form
        self._inputs = inputs

    def __len__(self) -> int:
        return len(self._inputs)

    def __getitem__(self, row: int) -> Any:
        value = self._inputs[row]
        number = value.to(torch.float32)
        if value.dtype == torch.uint8:
            number = number / 255
        return normalised(number, self._form.mean, self._form.std)


class Arrays(Inputs):
    """Samples of an archive with their labels.

    Attributes:
        targets: the label of each sample.
    """

    def __init__(self, form: ArrayForm, inputs: Tensor, targets: Tensor) -> None:
        super().__init__(form, inputs)
        self.targets = targets

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        return super().__getitem__(row), self.targets[row]


def _numbers(path: Path, values: Any) -> Any:
    """Return an array if it holds numbers, all of them finite."""
    if values.dtype.kind not in "biuf":
        raise DataError(f"{path}: expected numbers, got an array of {values.dtype}")
    if not np.isfinite(values).all():
        raise DataError(f"{path}: expected numbers, but some are missing or infinite")
    return values


def _turns(given: Tensor, shape: tuple[int, ...]) -> bool:
    return tuple(given.shape[1:]) == (*shape[1:], shape[0])


def _arrays(path: Path, names: tuple[str, ...]) -> list[Any]:
    found_file(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            for name in names:
                if name not in archive:
                    raise DataError(
                        f"{path}: there is no array {name!r}; the arrays are "
                        f"{', '.join(archive.files)}"
                    )
            return [archive[name] for name in names]
    except (BadZipFile, OSError, ValueError, TypeError) as error:
        raise DataError(f"{path}: this is not an NPZ archive: {error}") from error

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
from lightsplit.errors import DataError
from lightsplit.truths import ImageTruth, TableTruth, Truth


@dataclass(frozen=True)
class ArrayForm(Form):
    """Arrays of samples of one shape.

    Attributes:
        shape: of one sample. Images are (channels, height, width); arrays that end with
            the channels, or have none, are turned.
        classes: labels are 0 … ``classes`` - 1; None if labels are numbers.
        mean: subtracted from the inputs; bytes are first divided by 255.
        std: divides the difference.
    """

    shape: tuple[int, ...]
    classes: int | None = None
    mean: float | tuple[float, ...] | None = None
    std: float | tuple[float, ...] | None = None

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
        return Arrays(
            self, self._turned(path, arrays[0]), self._labels(path, arrays[1])
        )

    def _turned(self, path: Path, values: Any) -> Tensor:
        given = torch.from_numpy(np.ascontiguousarray(values))
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
        if self.classes is None:
            return torch.from_numpy(np.asarray(values, dtype=np.float32))
        labels = torch.from_numpy(np.asarray(values).astype(np.int64).reshape(-1))
        if len(labels) and (labels.min() < 0 or labels.max() >= self.classes):
            raise DataError(
                f"{path}: expected labels from 0 to {self.classes - 1}, got "
                f"{int(labels.min())} to {int(labels.max())}"
            )
        return labels


class Arrays(Dataset[tuple[Tensor, Tensor]]):
    """Samples of an archive; bytes stay bytes until a sample is asked for.

    Attributes:
        targets: the label of each sample.
    """

    def __init__(self, form: ArrayForm, inputs: Tensor, targets: Tensor) -> None:
        if len(inputs) != len(targets):
            raise DataError(f"{len(inputs)} inputs but {len(targets)} labels")
        self._form = form
        self._inputs = inputs
        self.targets = targets

    def __len__(self) -> int:
        return len(self._inputs)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        value = self._inputs[row]
        number = value.to(torch.float32)
        if value.dtype == torch.uint8:
            number = number / 255
        normal = normalised(number, self._form.mean, self._form.std)
        return normal, self.targets[row]


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

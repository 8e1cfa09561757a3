"""Images with masks: two folders whose files have the same names.

folder/image/07.png     the picture
folder/label/07.png     its mask: a grey value for each class
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import Dataset

from lightsplit.data.forms.base import Form, found_folder
from lightsplit.data.forms.pictures import (
    Pictures,
    check_form,
    picture_files,
    picture_size,
    pictures_in,
    read_mask,
    read_picture,
)
from lightsplit.errors import DataError
from lightsplit.truths import ImageTruth


@dataclass(frozen=True)
class MaskForm(Form):
    """Images of one size with a class for every pixel.

    Attributes:
        values: the grey value of each class in a mask; a label is the position here.
        size: height and width; other images and their masks are resized.
        channels: 1 for grey, 3 for colour.
        mean: subtracted from values in [0, 1], one for each channel or one for all.
        std: divides the difference.
    """

    size: tuple[int, int]
    values: tuple[int, ...] = (0, 255)
    channels: int = 1
    mean: float | tuple[float, ...] | None = None
    std: float | tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_form(self.size, self.channels)

    def truth(self) -> ImageTruth:
        """Return images of this size."""
        return ImageTruth((self.channels, *self.size), self.mean, self.std)

    def folder(
        self, path: Path | None, *, images: str = "image", masks: str = "label"
    ) -> "MaskedImages":
        """Return the images of the subfolder ``images`` with those of ``masks``."""
        root = found_folder(path)
        pictures = picture_files(found_folder(root / images))
        by_name = {
            file.stem: file for file in picture_files(found_folder(root / masks))
        }
        if not pictures:
            raise DataError(f"{root / images}: expected pictures, found none")
        for file in pictures:
            if file.stem not in by_name:
                raise DataError(
                    f"{file}: there is no mask {file.stem} in {root / masks}"
                )
        return MaskedImages(self, [(file, by_name[file.stem]) for file in pictures])

    def greys(self, labels: Tensor) -> list[Tensor]:
        """Return masks with the grey values of classes, one for each sample."""
        return list(torch.tensor(self.values, dtype=torch.int32)[labels.cpu()])

    def unlabelled(self, path: Path | None) -> Pictures:
        """Return all pictures in a folder, without masks, by name."""
        return pictures_in(self, found_folder(path))


class MaskedImages(Dataset[tuple[Tensor, Tensor]]):
    """Picture files with their masks, read when a sample is asked for.

    Every mask is also read once at the start: an undeclared grey value is an undeclared
    label, which no other party should wait for.

    Attributes:
        files: the picture and the mask of each sample.
    """

    def __init__(self, form: MaskForm, files: list[tuple[Path, Path]]) -> None:
        self._form = form
        self.files = files
        for picture, mask in files:
            of_picture, of_mask = picture_size(picture), picture_size(mask)
            if of_picture != of_mask:
                raise DataError(
                    f"{mask}: the mask is {of_mask[0]} x {of_mask[1]}, but its image "
                    f"is {of_picture[0]} x {of_picture[1]}"
                )
            self._classes(mask)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        picture, mask = self.files[row]
        return read_picture(picture, self._form), self._classes(mask)

    def _classes(self, mask: Path) -> Tensor:
        grey = read_mask(mask, self._form.size)
        labels = torch.full(grey.shape, -1, dtype=torch.int64)
        for label, value in enumerate(self._form.values):
            labels[grey == value] = label
        if (labels < 0).any():
            strange = int(grey[labels < 0][0])
            raise DataError(
                f"{mask}: the grey value {strange} is not one of the task's, "
                f"{', '.join(map(str, self._form.values))}"
            )
        return labels

"""Images with a class: a folder per class, or a list of file names and labels.

folder/cat/001.png      folder(…): the folder's name is the class
folder/dog/002.png
labels.csv              listed(…): columns file and label; files relative to the CSV
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from lightsplit.data.forms.base import Form, class_index, found_folder
from lightsplit.data.forms.pictures import (
    Pictures,
    check_form,
    picture_files,
    pictures_in,
)
from lightsplit.data.forms.rows import read_rows
from lightsplit.errors import DataError
from lightsplit.truths import ImageTruth


@dataclass(frozen=True)
class ImageForm(Form):
    """Images of one size, each of one class.

    Attributes:
        classes: names of the classes; a label is the position in this list.
        size: height and width; other images are resized.
        channels: 1 for grey, 3 for colour.
        mean: subtracted from values in [0, 1], one for each channel or one for all.
        std: divides the difference.
    """

    classes: tuple[str, ...]
    size: tuple[int, int]
    channels: int = 1
    mean: float | tuple[float, ...] | None = None
    std: float | tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_form(self.size, self.channels)

    def truth(self) -> ImageTruth:
        """Return images of this size."""
        return ImageTruth((self.channels, *self.size), self.mean, self.std)

    def folder(self, path: Path | None) -> "Images":
        """Return the images of a folder with one subfolder per class.

        Samples are ordered by the file's name and then by class.
        """
        root = found_folder(path)
        folders = {
            one: class_index(one.name, self.classes, str(one))
            for one in root.iterdir()
            if one.is_dir() and not one.name.startswith(".")
        }
        found = [
            (file, label)
            for one, label in folders.items()
            for file in picture_files(one)
        ]
        if not found:
            raise DataError(
                f"{root}: expected pictures in one subfolder per class "
                f"({', '.join(self.classes)}), found none"
            )
        return Images(self, sorted(found, key=lambda one: (one[0].name, one[1])))

    def unlabelled(self, path: Path | None) -> Pictures:
        """Return all pictures in a folder, without labels, by name."""
        return pictures_in(self, found_folder(path))

    def listed(
        self, csv: Path, *, file: str = "file", label: str = "label"
    ) -> "Images":
        """Return the images that a CSV lists, in its order.

        Args:
            csv: the list; its file names are relative to its own folder.
            file: the column with the file's name.
            label: the column with the class.
        """
        found = [
            (csv.parent / row[file], class_index(row[label], self.classes, place))
            for place, row in read_rows(csv, (file, label))
        ]
        return Images(self, found)


class Images(Pictures):
    """Picture files with their classes.

    Attributes:
        targets: the class of each sample, (N,).
    """

    def __init__(self, form: ImageForm, found: list[tuple[Path, int]]) -> None:
        super().__init__(form, [file for file, _ in found])
        self.targets = torch.tensor([label for _, label in found])

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        return super().__getitem__(row), self.targets[row]

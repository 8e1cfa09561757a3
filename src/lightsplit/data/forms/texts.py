"""Texts with a class or without: CSV and TSV files, or saved Hugging Face datasets.

"a fine film", positive  ──tokenize──►  {"input_ids": …, "attention_mask": …}, 1
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from lightsplit.data.forms.base import Form, class_index, found_folder
from lightsplit.data.forms.rows import read_rows
from lightsplit.errors import DataError
from lightsplit.extras import require
from lightsplit.truths import TextTruth

Tokenize = Callable[[str], Mapping[str, Any]]
IDS = "input_ids"


@dataclass(frozen=True)
class TextForm(Form):
    """Texts, each of one class.

    Attributes:
        classes: names of the classes; a label is the position in this list.
        tokenize: turns a text into tensors by name, ``input_ids`` among them; a
            Hugging Face tokenizer works as it is.
        max_tokens: how long every sample is: shorter ones are padded, longer ones
            refused.
        truncate: cut longer texts instead of refusing them.
        padding: the token that fills a short sample.
    """

    classes: tuple[str, ...]
    tokenize: Tokenize
    max_tokens: int
    truncate: bool = False
    padding: int = 0

    def truth(self) -> TextTruth:
        """Return texts of this length, legible if the tokenizer can decode."""
        read = getattr(self.tokenize, "decode", None)
        return TextTruth(self.max_tokens, self.padding, IDS, read)

    def file(self, path: Path, *, text: str = "text", label: str = "label") -> "Texts":
        """Return the rows of a CSV, TSV or Parquet file with these two columns."""
        found = [
            (place, row[text], class_index(row[label], self.classes, place))
            for place, row in read_rows(path, (text, label))
        ]
        return Texts(self, found)

    def unlabelled(self, path: Path, *, text: str = "text") -> "Unread":
        """Return the texts of a CSV, TSV or Parquet file, without labels."""
        rows = read_rows(path, (text,))
        return Unread(self, [(place, row[text]) for place, row in rows])

    def saved(
        self, path: Path | None, *, text: str = "text", label: str = "label"
    ) -> "Texts":
        """Return a dataset that Hugging Face's ``save_to_disk`` wrote.

        Labels are told apart by the dataset's own names of classes, if it has names.
        """
        folder = found_folder(path)
        library: Any = require("datasets", extra="text", purpose="a saved dataset")
        try:
            rows = library.load_from_disk(str(folder))
        except (FileNotFoundError, ValueError) as error:
            raise DataError(f"{folder}: this is not a saved dataset") from error
        if isinstance(rows, dict):
            raise DataError(
                f"{folder}: there are several datasets, {', '.join(rows)}; give the "
                "folder of one"
            )
        for name in (text, label):
            if name not in rows.column_names:
                raise DataError(
                    f"{folder}: there is no column {name!r}; the columns are "
                    f"{', '.join(rows.column_names)}"
                )
        names = getattr(rows.features[label], "names", self.classes)
        found = []
        for number, row in enumerate(rows):
            place = f"{folder}, row {number}"
            if not isinstance(row[text], str):
                raise DataError(f"{place}: expected a text, got {row[text]!r}")
            found.append((place, row[text], self._class(row[label], names, place)))
        return Texts(self, found)

    def encode(self, place: str, text: str) -> dict[str, Tensor]:
        """Return the tensors of one text, padded."""
        given = {
            name: torch.as_tensor(value).flatten()
            for name, value in dict(self.tokenize(text)).items()
        }
        if IDS not in given:
            raise DataError(f"the tokenizer gives no {IDS!r}, only {', '.join(given)}")
        count = len(given[IDS])
        if count > self.max_tokens and not self.truncate:
            raise DataError(
                f"{place}: the text has {count} tokens, more than the task's "
                f"{self.max_tokens}; shorten it, or set truncate in the task"
            )
        return {name: self._padded(name, values) for name, values in given.items()}

    def _padded(self, name: str, values: Tensor) -> Tensor:
        kept = values[: self.max_tokens]
        filler = self.padding if name == IDS else 0
        missing = self.max_tokens - len(kept)
        return torch.nn.functional.pad(kept, (0, missing), value=filler)

    def _class(self, label: Any, names: Sequence[str], place: str) -> int:
        if isinstance(label, int) and 0 <= label < len(names):
            label = names[label]
        return class_index(str(label), self.classes, place)


class Unread(Dataset[Any]):
    """Texts without classes, tokenized when a sample is asked for."""

    def __init__(self, form: TextForm, texts: list[tuple[str, str]]) -> None:
        self._form = form
        self._texts = texts
        if not form.truncate:  # refuse a long text before anything is sent
            for place, text in texts:
                form.encode(place, text)

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, row: int) -> Any:
        return self._form.encode(*self._texts[row])


class Texts(Unread):
    """Texts with their classes.

    Attributes:
        targets: the class of each sample, (N,).
    """

    def __init__(self, form: TextForm, found: list[tuple[str, str, int]]) -> None:
        super().__init__(form, [(place, text) for place, text, _ in found])
        self.targets = torch.tensor([label for _, _, label in found])

    def __getitem__(self, row: int) -> tuple[dict[str, Tensor], Tensor]:
        return super().__getitem__(row), self.targets[row]

"""What a trained decoder of codes has, whatever kind of sample it returns."""

from abc import abstractmethod
from typing import ClassVar

from torch import Tensor, nn


class CodeDecoder(nn.Module):
    """A network from codes to samples, with the loss and the score of its kind.

    Attributes:
        score_name: what ``score`` returns, in words.
        notes: remarks for a reader of the figures.
    """

    score_name: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    @property
    @abstractmethod
    def folds(self) -> Tensor:
        """The fold of each pair that it was built from, for ``forward``."""

    @abstractmethod
    def forward(self, codes: Tensor, folds: Tensor | None = None) -> Tensor:
        """Return the output for codes; ``folds`` are those of pairs in training."""

    @abstractmethod
    def loss(self, output: Tensor, truth: Tensor) -> Tensor:
        """Return the distance of an output from the true samples, as one number."""

    @abstractmethod
    def score(self, guesses: Tensor, truth: Tensor) -> float:
        """Return how good guesses are; 1 is perfect."""

    def guess(self, output: Tensor) -> Tensor:
        """Return the samples that an output stands for."""
        return output

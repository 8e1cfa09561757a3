"""The interface of a kind of truth."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor


class Truth(ABC):
    """What an attack is to find out about the samples of a task.

    Attributes:
        kind: its name: ``image``, ``table`` or ``text``.
        things: what samples of this kind are called, in the plural.
        telling: metrics in one of which an attack must beat every trivial attack.
    """

    kind: ClassVar[str]
    things: ClassVar[str]
    telling: ClassVar[tuple[str, ...]]

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""

    @abstractmethod
    def samples(self, inputs: Any) -> Tensor:
        """Return what is to be found out about a batch of a task's inputs (N, …)."""

    @abstractmethod
    def inputs(self, samples: Tensor) -> Any:
        """Return inputs of the model for samples; differentiable where that exists."""

"""Inspectors: clients check their server by the gradients that it sends back.

    code gradient as received ──observe──► score: near 1 honest, near 0 hijacked

The gradient is inspected before the client adds its objectives' own: those know the
labels and would look honest whatever the server did. An inspector keeps no state on
disk: after a restart it starts again.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor

from lightsplit.codecs import Codec
from lightsplit.registry import Registry


class Inspector(ABC):
    """Checks every gradient that a client receives.

    Attributes:
        name: the registered name.
        score: the latest score, between 0 and 1; None until there is enough evidence.
        alarmed_at: the step of the first alarm; None without an alarm.
    """

    name: ClassVar[str]

    def __init__(self) -> None:
        self.score: float | None = None
        self.alarmed_at: int | None = None

    @classmethod
    def check_codec(cls, codec: Codec) -> None:
        """Raise ConfigError if an honest server with this codec would look hijacked."""
        del codec  # most inspectors accept any codec

    def probe(self, step: int, labels: Tensor) -> Tensor | None:
        """Return wrong labels to test the server with at ``step``; None to train.

        The client does not learn from a step with wrong labels; an honest server does.
        """
        del step, labels
        return None

    @abstractmethod
    def observe(
        self, step: int, values: Tensor, labels: Tensor, gradient: Tensor
    ) -> None:
        """Check the gradient of a step.

        Args:
            step: the step, counted from 0.
            values: the values of the code, with the graph to the head.
            labels: the labels used in the step.
            gradient: the gradient at the code, as received (B, …).
        """

    def _alarm(self, step: int) -> None:
        if self.alarmed_at is None:
            self.alarmed_at = step


INSPECTORS: Registry[Inspector] = Registry("inspector")

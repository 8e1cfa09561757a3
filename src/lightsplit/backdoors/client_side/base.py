"""What a client can notice about its server, from the gradients that it gets back.

    code gradient as received ──observe──► score: near 1 honest, near 0 hijacked

It is looked at before the client adds its own compaction to it, which knows the labels
and would look honest whatever the server did. An inspector has no state on disk: after
a restart it begins anew.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor

from lightsplit.registry import Registry


class Inspector(ABC):
    """Looks at every gradient that a client receives.

    Attributes:
        name: the registered name.
        score: the last one, between 0 and 1; None until there is enough to judge by.
        alarmed_at: the step at which the alarm was raised first; None while it is not.
    """

    name: ClassVar[str]

    def __init__(self) -> None:
        self.score: float | None = None
        self.alarmed_at: int | None = None

    def probe(self, step: int, labels: Tensor) -> Tensor | None:
        """Return wrong labels to try the server with at ``step``; None to train.

        The client learns nothing from a step on wrong labels; an honest server does.
        """
        del step, labels
        return None

    @abstractmethod
    def observe(
        self, step: int, values: Tensor, labels: Tensor, gradient: Tensor
    ) -> None:
        """Look at a step.

        Args:
            step: counted from 0.
            values: of the code, with the graph to the head.
            labels: that were used.
            gradient: at the code, as it was received (B, …).
        """

    def _alarm(self, step: int) -> None:
        if self.alarmed_at is None:
            self.alarmed_at = step


INSPECTORS: Registry[Inspector] = Registry("inspector")

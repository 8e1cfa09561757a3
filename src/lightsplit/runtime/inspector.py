"""The interface between a client and whatever inspects its server."""

from typing import Protocol

from torch import Tensor


class Inspector(Protocol):
    """Looks at the gradients that come back, before anything is added to them."""

    def probe(self, step: int, labels: Tensor) -> Tensor | None:
        """Return wrong labels to try the server with; None to train as usual."""
        ...

    def observe(
        self, step: int, values: Tensor, labels: Tensor, gradient: Tensor
    ) -> None:
        """Look at the gradient that was received for the code ``values``."""
        ...

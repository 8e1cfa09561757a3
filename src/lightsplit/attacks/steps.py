"""Steps of training, assembled from the exchanges that a server has.

    U-shape   code ─► output,  output gradient ─► code gradient    complete after two
    vanilla   code with labels ─► code gradient                    complete after one

A step is complete when the server has updated its weights by it. The code of the step
is older: the head that made it had not been updated yet.
"""

from typing import NamedTuple

from torch import Tensor

from lightsplit.attacks.view import Exchange, read_code
from lightsplit.codecs import Code
from lightsplit.protocol import CodeMessage, Wire


class Seen(NamedTuple):
    """A batch of the victim's: its code, and its labels if the server has them."""

    code: Code
    labels: Tensor | None


class StepReader:
    """Waits for the exchange that completes a step."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._open: CodeMessage | None = None

    def read(self, exchange: Exchange) -> Seen | None:
        """Return the step that this exchange completes, or None."""
        request = exchange.request
        if not isinstance(request, CodeMessage):
            opened, self._open = self._open, None
            is_same = opened is not None and opened.step == request.step
            return self._seen(opened) if opened and is_same else None
        if request.is_training and request.labels is not None:
            return self._seen(request)
        if request.is_training:
            self._open = request
        return None

    def _seen(self, message: CodeMessage) -> Seen:
        return Seen(read_code(message, self._wire), message.labels)

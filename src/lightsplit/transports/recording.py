"""Keeps the messages that passed between clients and server."""

from collections import deque

from lightsplit.protocol import Reply, Request
from lightsplit.transports.middleware import Send


class Recorder:
    """A mod that keeps requests with their replies.

    It keeps the tensors that were sent, not copies: neither end writes to a tensor
    after sending it.

    Args:
        limit: number of newest exchanges to keep; None keeps all.
        only_training: whether to leave out forward passes outside training.
    """

    def __init__(
        self, limit: int | None = None, *, only_training: bool = False
    ) -> None:
        self.exchanges: deque[tuple[Request, Reply]] = deque(maxlen=limit)
        self._only_training = only_training

    def __call__(self, request: Request, call_next: Send) -> Reply:
        """Pass the request on and keep it with its reply."""
        reply = call_next(request)
        if request.is_training or not self._only_training:
            self.exchanges.append((request, reply))
        return reply

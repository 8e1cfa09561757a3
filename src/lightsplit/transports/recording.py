"""Keeps what passed between clients and server.

A run without a recorder has nothing in its way: the mod is put there or it is not.
"""

from collections import deque

from lightsplit.protocol import CodeMessage, Reply, Request
from lightsplit.transports.middleware import Send


class Recorder:
    """A mod that keeps requests with their replies.

    The tensors are those that were sent, not copies: neither side writes to a tensor
    that it has sent.

    Args:
        limit: how many of the newest exchanges are kept; None is all.
        only_training: whether forward passes outside training are left out.
    """

    def __init__(
        self, limit: int | None = None, *, only_training: bool = False
    ) -> None:
        self.exchanges: deque[tuple[Request, Reply]] = deque(maxlen=limit)
        self._only_training = only_training

    def __call__(self, request: Request, call_next: Send) -> Reply:
        """Let the request through and keep it with its reply."""
        reply = call_next(request)
        is_training = not isinstance(request, CodeMessage) or request.is_training
        if is_training or not self._only_training:
            self.exchanges.append((request, reply))
        return reply

"""A server that gets each sample's code once, and trains on the codes that it keeps.

    Release         ─► codes kept                  ─► Noted
    Recall          ─► decoder · backbone          ─► OutputMessage    the step is open
    OutputGradient  ─► backward, update            ─► Noted            the step is done

No gradient at a code is sent back: the heads that made them are frozen. A code outside
training, as of a new sample to predict, is answered as by any server.
"""

from torch import Tensor

from lightsplit.errors import ConfigError, ProtocolError
from lightsplit.protocol import (
    CodeMessage,
    Noted,
    Recall,
    Release,
    Reply,
    Request,
)
from lightsplit.runtime.magnitudes import check_numbers
from lightsplit.runtime.server import Server


class CachingServer(Server):
    """Answers steps that name samples instead of sending their codes."""

    def answer(self, request: Request) -> Reply:
        """Return the reply to a message, perhaps before the weights are updated."""
        if isinstance(request, Release):
            return self._keep(request)
        if isinstance(request, Recall):
            return self._recalled(request)
        if isinstance(request, CodeMessage) and request.is_training:
            raise ProtocolError(
                "each code is sent once in this run, before training, got one with a "
                "step of training",
                code="out-of-order",
            )
        return super().answer(request)

    def _keep(self, request: Release) -> Noted:
        code = self.wire.read_release(request)
        check_numbers("code", code.values, self.norm_limit)
        self.side.released.add(
            request.client, request.first, code, is_training=request.is_training
        )
        return Noted(request.client, request.step)

    def _recalled(self, request: Recall) -> Reply:
        self.settle()
        code = self.side.released.rows(
            request.client, request.numbers, is_training=request.is_training
        )
        at = (request.client, request.step)
        return self._compute(
            CodeMessage(*at, code, is_training=request.is_training), code
        )

    def _end_of_step(
        self,
        request: Request,
        values: Tensor,  # noqa: ARG002  their gradient is sent to nobody
        loss: float | None = None,
    ) -> Reply:
        if loss is not None:
            raise ConfigError("where codes are sent once, the client has the labels")
        return Noted(request.client, request.step)

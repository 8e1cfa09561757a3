"""How many different codes of test samples the server has read.

    grant of an evaluation ─► begin      codes of its batches ─► add      end ─► worst

With M distinct codes of N samples, no attack that sees one code of each can name more
than M of the N. Codes are kept as digests, and only those of a client's first samples.
"""

import hashlib
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor

from lightsplit.codecs import Code
from lightsplit.protocol import CodeMessage, Recall, Request
from lightsplit.runtime import Server

SAMPLES = 2000


class CodesSeen(NamedTuple):
    """The codes of one client in its last evaluation.

    Attributes:
        samples: that were coded.
        distinct: how many different codes they have.
    """

    samples: int
    distinct: int

    @property
    def bound(self) -> float:
        """The share of the samples that codes alone can tell apart, at most."""
        return self.distinct / self.samples


@dataclass
class _Evaluation:
    samples: int = 0
    digests: set[bytes] = field(default_factory=set)


class CodeCount:
    """Counts the codes of each client's last evaluation.

    Args:
        server: that reads the codes.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._clients: dict[int, _Evaluation] = {}

    def begin(self, client: int) -> None:
        """Forget a client's codes: it evaluates anew, or goes on over a new line."""
        self._clients[client] = _Evaluation()

    def add(self, message: Request) -> None:
        """Count the codes of a batch that the server has answered."""
        code = self._code(message)
        if code is None:
            return
        counted = self._clients.setdefault(message.client, _Evaluation())
        rows = self._server.side.codec.rows(code)[: SAMPLES - counted.samples]
        counted.samples += len(rows)
        counted.digests.update(_digests(rows))

    def worst(self) -> CodesSeen | None:
        """Return the client with the most telling codes; None if none has evaluated."""
        seen = [
            CodesSeen(one.samples, len(one.digests))
            for one in self._clients.values()
            if one.samples
        ]
        return max(seen, key=lambda one: one.bound, default=None)

    def _code(self, message: Request) -> Code | None:
        if isinstance(message, CodeMessage):
            return self._server.wire.read_code(message)
        if isinstance(message, Recall):  # of a code that was sent once
            return self._server.side.released.rows(
                message.client, message.numbers, is_training=message.is_training
            )
        return None


def _digests(rows: Tensor) -> set[bytes]:
    table = rows.detach().flatten(1).float().cpu().numpy()
    return {hashlib.sha256(row.tobytes()).digest() for row in table}

"""The server's work at each stage of a round, on the messages of all its owners.

A message that cannot be computed puts its own sender out of the round, and nobody else.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from lightsplit.deployment.open_round import OpenRound
from lightsplit.errors import LightSplitError, ProtocolError, RunError
from lightsplit.protocol import CodeMessage, Contract, Reply, Request, Share, Total
from lightsplit.runtime import JoiningServer, masked_sum


class StageSteps(Protocol):
    """Answers the messages of rounds."""

    def check(self, request: Request) -> None:
        """Raise if one owner's message must not enter a stage."""

    def answers(self, opened: OpenRound) -> dict[int, Reply]:
        """Return the replies of a stage; owners without one are out of the round."""
        ...

    def settle(self) -> None:
        """Do the work that was put off until replies were on their way."""


class RoundSteps:
    """Lets the server answer all messages of a stage together.

    Args:
        server: the same as in one process.
        contract: of the run.
    """

    def __init__(self, server: JoiningServer, contract: Contract) -> None:
        self._server = server
        self._server.norm_limit = contract.norm_limit

    def check(self, request: Request) -> None:
        """Raise if one owner's message must not enter the round."""
        try:
            self._server.check(request)
        except (LightSplitError, OSError, MemoryError):
            raise
        except Exception as error:  # modules may raise anything on a strange message
            raise _refused(request, error) from error

    def answers(self, opened: OpenRound) -> dict[int, Reply]:
        """Return the replies of a stage; owners without one are out of the round."""
        messages = [opened.heard[client] for client in sorted(opened.heard)]
        if isinstance(messages[0], CodeMessage):
            number = opened.round.number
            replies = self._computed(
                opened,
                messages,
                lambda codes: self._server.forward_round(number, codes),
            )
            opened.rows = dict(self._server.rows)
            return replies
        if isinstance(messages[0], Share):
            return added(opened, messages)
        answered: dict[int, Reply] = dict(self._server.backward_round(messages))
        for message in messages:
            if message.client not in answered:
                opened.refuse(message.client, _too_large())
        return answered

    def settle(self) -> None:
        """Update the weights by the last gradients."""
        self._server.settle()

    def _computed(
        self, opened: OpenRound, messages: list[Any], compute: Callable[[Any], Any]
    ) -> dict[int, Reply]:
        """Compute on all messages, without those that cannot be computed alone."""
        try:
            return dict(compute(messages))
        except (OSError, MemoryError):
            raise
        except Exception as error:
            fitting = [one for one in messages if self._fits(opened, one, compute)]
            if not fitting or len(fitting) == len(messages):
                raise RunError(
                    f"the codes of round {opened.round.number} cannot be computed "
                    f"together: {' '.join(str(error).split())}"
                ) from error
            return dict(compute(fitting))

    def _fits(
        self, opened: OpenRound, message: Request, compute: Callable[[Any], Any]
    ) -> bool:
        """Return whether a message can be computed alone; if not, refuse it."""
        try:
            compute([message])
        except (OSError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001  modules may raise anything
            opened.refuse(message.client, _refused(message, error))
            return False
        return True


def added(opened: OpenRound, shares: Sequence[Share]) -> dict[int, Reply]:
    """Return the sum of the shares to each; most of them decide on the length."""
    lengths = [len(share.numbers) for share in shares]
    usual = max(set(lengths), key=lambda length: (lengths.count(length), length))
    for share in shares:
        if len(share.numbers) != usual:
            text = f"share: expected {usual} numbers, got {len(share.numbers)}"
            error = ProtocolError(text, code="wrong-shape")
            opened.refuse(share.client, error)
    fitting = [share for share in shares if len(share.numbers) == usual]
    numbers, nonces = masked_sum.added(fitting)
    return {one.client: Total(one.client, one.step, numbers, nonces) for one in fitting}


def _too_large() -> ProtocolError:
    return ProtocolError(
        "the gradient of the server's weights by this owner's batch is beyond the "
        "contract's norm limit",
        code="out-of-range",
    )


def _refused(message: Request, error: Exception) -> LightSplitError:
    if isinstance(error, LightSplitError):
        return error
    return ProtocolError(
        f"{message.kind} of step {message.step} cannot be computed: "
        f"{type(error).__name__}",
        code="refused",
    )

"""The server's work at each stage of a round, on the messages of all its owners.

An owner whose message cannot be computed leaves the round; the others stay in it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from lightsplit.deployment.open_round import OpenRound
from lightsplit.deployment.turn_steps import computed
from lightsplit.errors import LightSplitError, RunError
from lightsplit.protocol import CodeMessage, Contract, Reply, Request, Share
from lightsplit.runtime import JoiningServer, masked_sum


class StageSteps(Protocol):
    """Answers the messages of rounds."""

    def check(self, request: Request) -> None:
        """Raise if an owner's message must not enter a stage."""

    def answers(self, opened: OpenRound) -> dict[int, Reply]:
        """Return the replies of a stage; an owner without one leaves the round."""
        ...

    def undo_round(self, opened: OpenRound) -> bool:
        """Undo a round, including its update, if that is still possible."""
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
        """Raise if an owner's message must not enter the round."""
        computed(request, self._server.check)

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
                opened.refuse(message.client, self._server.refused[message.client])
        return answered

    def undo_round(self, opened: OpenRound) -> bool:
        """Undo a round, including its update, if no owner has used the update yet."""
        if opened.kind == Share.kind:
            return False
        self._server.undo_round()
        return True

    def settle(self) -> None:
        """Update the weights by the last gradients."""
        self._server.settle()

    def _computed(
        self, opened: OpenRound, messages: list[Any], compute: Callable[[Any], Any]
    ) -> dict[int, Reply]:
        """Compute all messages, leaving out those that cannot be computed alone."""
        try:
            return dict(compute(messages))
        except (OSError, MemoryError):
            raise
        except Exception as error:
            fitting = [one for one in messages if self._fits(opened, one, compute)]
            if len(fitting) == len(messages):
                raise RunError(
                    f"the codes of round {opened.round.number} cannot be computed "
                    f"together: {' '.join(str(error).split())}"
                ) from error
            return dict(compute(fitting)) if fitting else {}

    def _fits(
        self, opened: OpenRound, message: Request, compute: Callable[[Any], Any]
    ) -> bool:
        """Return whether a message can be computed alone; if not, refuse it."""
        try:
            computed(message, lambda alone: compute([alone]))
        except LightSplitError as error:
            opened.refuse(message.client, error)
            return False
        return True


def added(opened: OpenRound, shares: Sequence[Share]) -> dict[int, Reply]:
    """Return the sum of the shares to each owner, with the samples of its owners."""
    samples = sum(opened.rows[share.client] for share in shares)
    return {**masked_sum.totals(shares, samples)}

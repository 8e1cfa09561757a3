"""The steps of the turns under way, each applied exactly once."""

import re
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from lightsplit.deployment.assignments import Assignment
from lightsplit.deployment.code_count import CodeCount
from lightsplit.deployment.turn_log import TurnLogs
from lightsplit.errors import LightSplitError, ProtocolError
from lightsplit.protocol import (
    Contract,
    EncryptedCode,
    EncryptedOutput,
    Reply,
    Request,
)
from lightsplit.protocol.phases import step_kinds
from lightsplit.runs.guard import Guard
from lightsplit.runtime import Pace, Server
from lightsplit.runtime.encrypted import answer_encrypted

Made = TypeVar("Made")
_PATH = re.compile(r"(?<![\w/])/[\w.+-]+(?:/[\w.+-]+)+")  # of the server's own disk


class TurnSteps:
    """Lets the server answer the messages of a turn and keeps its replies.

    Args:
        server: the same as in one process.
        contract: of the run.
        guard: whose collector sees the messages, if the run has one.

    Attributes:
        logs: of the turns under way.
        codes: counts the distinct codes of evaluations.
    """

    def __init__(
        self, server: Server, contract: Contract, guard: Guard | None = None
    ) -> None:
        self._server = server
        self._server.norm_limit = contract.norm_limit
        self._guard = guard
        self._contract = contract
        self.logs = TurnLogs()
        self.codes = CodeCount(server)

    def answer(self, assignment: Assignment, pace: Pace, message: Request) -> Reply:
        """Return the reply to a message of a turn."""
        if not message.is_training:
            return self._evaluate(message)
        kinds = step_kinds(self._contract, pace.phase)
        if message.kind not in kinds:
            expected = " or ".join(kinds) or "no message"
            raise ProtocolError(
                f"turn {assignment.number} ({pace.phase}): expected {expected}, got "
                f"{message.kind}",
                code="out-of-order",
            )
        end = pace.first_step + assignment.steps
        if message.step >= end:
            raise ProtocolError(
                f"turn {assignment.number} ends with step {end - 1}, "
                f"got step {message.step}",
                code="out-of-order",
            )
        log = self.logs.of(assignment)
        if assignment is not self.logs.late:  # all steps of a late turn are applied
            self._server.pace = pace
        return log.answer(message, kinds, pace.first_step, self._compute)

    def _evaluate(self, message: Request) -> Reply:
        reply = self.infer(message)
        self.codes.add(message)
        return reply

    def infer(self, message: Request) -> Reply:
        """Return the output for a code outside training; no weight changes."""
        return self._compute(message)

    def infer_encrypted(self, message: EncryptedCode) -> EncryptedOutput:
        """Return the encrypted output for a code that the server cannot read."""
        if not self._contract.cipher_bytes:
            raise ProtocolError(
                "this server reads codes: start it with --encrypted", code="refused"
            )
        return answer_encrypted(self._server, message)

    def tested(self, client: int) -> int:
        """Return how many codes of a client's test samples the server has."""
        if not self._contract.sends_once:
            return 0
        return self._server.side.released.count(client, is_training=False)

    def settle(self) -> None:
        """Do the work that the server put off until its reply was on its way."""
        self._server.settle()

    def abandon(self, assignment: Assignment, first_step: int) -> None:
        """Undo the open step of a client that has gone; a late turn has none."""
        if assignment is self.logs.late:
            return
        self._server.settle()
        self._server.abandon_step()
        self.logs.current.forget_open_step(first_step)

    def _compute(self, message: Request) -> Reply:
        """Let the server answer; refuse a message that its modules cannot compute."""
        answer = self._server.answer
        if self._guard is not None:
            return computed(message, partial(self._guard.collector, call_next=answer))
        return computed(message, answer)


def computed(message: Request, answer: Callable[[Request], Made]) -> Made:
    """Return the answer to a message; refuse it if the modules cannot compute it."""
    try:
        return answer(message)
    except (LightSplitError, OSError, MemoryError):
        raise
    except Exception as error:  # modules may raise anything on a strange message
        raise cannot_compute(message, error) from error


def cannot_compute(message: Request, error: Exception) -> ProtocolError:
    """Return the refusal of a message that the server's modules failed on."""
    reason = _PATH.sub("…", " ".join(str(error).split()))
    return ProtocolError(
        f"{message.kind} of step {message.step} cannot be computed: {reason}",
        code="refused",
    )

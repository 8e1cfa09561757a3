"""One round of owners who work at the same time, as the server sees it.

    codes ─► output gradients ─► [shares of the gradient of head and tail] ─► hand-in

A stage ends when every owner still in the round has sent its message, or when time is
up and enough of them have. Owners that are late leave the round. Replies are kept until
the round is over: an owner that asks again gets the same reply, and each message counts
once. Nothing here knows about connections, threads or the model.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lightsplit.errors import LightSplitError, ProtocolError
from lightsplit.protocol import Reply, Request
from lightsplit.protocol.control import TurnDone
from lightsplit.runs.rounds import Attendance, Round

HAND_IN = "hand_in"


class OpenRound:
    """The messages of one round.

    Args:
        round_: of the schedule.
        kinds: of the messages that an owner sends, in order; the hand-in follows.
        invited: owners that are present when it begins.
        now: the time.

    Attributes:
        round: of the schedule.
        invited: owners that the round waits for, or has waited for.
        speaker: the owner that evaluates and hands the side on for all.
        heard: the messages of the current stage, by owner.
        rows: samples in each owner's batch.
    """

    def __init__(
        self, round_: Round, kinds: Sequence[str], invited: set[int], now: float
    ) -> None:
        self.round = round_
        self.invited = set(invited)
        self.speaker = max(invited)
        self.heard: dict[int, Any] = {}
        self.rows: dict[int, int] = {}
        self._kinds = (*kinds, HAND_IN)
        self._came: list[tuple[int, ...]] = []
        self._opened = now
        self._heard_at: dict[int, float] = {}
        self._replies: dict[tuple[int, str], Reply] = {}
        self._refusals: dict[int, LightSplitError] = {}

    @property
    def kind(self) -> str:
        """The kind of message that the round is waiting for."""
        return self._kinds[len(self._came)] if not self.is_over else ""

    @property
    def is_over(self) -> bool:
        """Return whether every owner has handed the round in or left it."""
        return len(self._came) == len(self._kinds)

    @property
    def missing(self) -> set[int]:
        """The owners that the round waits for."""
        return self.expected - self.heard.keys()

    def waited(self, now: float) -> float:
        """Return how long the round has been at this stage, in seconds."""
        return now - self._opened

    def is_complete(self, now: float, least: int, patience: float) -> bool:
        """Return whether the stage is over.

        Args:
            now: the time.
            least: how many owners are enough when the time is up.
            patience: how long to wait for all of them, in seconds.
        """
        if not self.missing:
            return bool(self.heard)
        is_late = self.waited(now) >= patience
        return is_late and len(self.heard) >= max(least, 1)

    @property
    def refused(self) -> set[int]:
        """The owners whose messages put them out of this round."""
        return set(self._refusals)

    def check_not_refused(self, client: int) -> None:
        """Raise the refusal that put an owner out of this round, if there was one."""
        if client in self._refusals:
            raise self._refusals[client]

    def check_member(self, client: int, kind: str) -> None:
        """Raise unless a message from this owner can still count in this round."""
        self.check_not_refused(client)
        place = self._kinds.index(kind)
        is_late = place < len(self._came)
        if is_late or client not in self.expected:
            raise ProtocolError(
                f"round {self.round.number} went on without this owner, who was too "
                "late",
                code="stale-turn",
            )
        if place > len(self._came):
            raise ProtocolError(
                f"expected {self.kind} in round {self.round.number}, got {kind}",
                code="out-of-order",
            )

    def reply(self, client: int, kind: str) -> Reply | None:
        """Return the reply that this owner was given earlier, if there is one."""
        return self._replies.get((client, kind))

    def invite(self, client: int) -> None:
        """Let in an owner that arrives after the round has begun."""
        self.invited.add(client)

    @property
    def concerned(self) -> set[int]:
        """The owners that may be waiting for this stage to end."""
        return self.expected | self.heard.keys() | self._refusals.keys()

    def hear(self, client: int, message: Request | TurnDone, now: float) -> None:
        """Note an owner's message; a second one does not count."""
        if client not in self.heard:
            self.heard[client] = message
            self._heard_at[client] = now

    def waits(self, now: float) -> dict[int, float]:
        """Return how long each owner in this stage has waited for the others."""
        return {client: now - self._heard_at[client] for client in self.heard}

    def refuse(self, client: int, error: LightSplitError) -> None:
        """Remove an owner whose message cannot be computed from the round."""
        self._refusals[client] = error
        self.heard.pop(client, None)
        self.invited.discard(client)

    def close_stage(self, replies: Mapping[int, Reply], now: float) -> None:
        """Go on to the next stage with the owners that got a reply."""
        for client, reply in replies.items():
            self._replies[client, self.kind] = reply
        self._came.append(tuple(sorted(replies)))
        self.heard = {}
        self._opened = now

    def end(self) -> None:
        """Close the last stage."""
        self._came.append(tuple(sorted(self.heard)))

    def done_steps(self, client: int) -> int:
        """Return how many steps of an owner the backbone holds."""
        return int(len(self._came) > 1 and client in self._came[1])

    @property
    def attendance(self) -> Attendance:
        """Which owners reached each stage."""
        codes, gradients, *shares = self._came[:-1]
        return Attendance(
            codes, gradients, shares[0] if shares else gradients, self.done
        )

    @property
    def done(self) -> tuple[int, ...]:
        """The owners that handed the round in."""
        return self._came[-1]

    @property
    def expected(self) -> set[int]:
        """The owners whose messages count at this stage."""
        refused = self._refusals.keys()
        return (set(self._came[-1]) if self._came else self.invited) - refused

"""A client's own log of its turns, and whether the server has gone back.

    STATE/turns.jsonl   one line per event, only ever added to, for its owner's eyes

A server that restarts from a checkpoint repeats turns, so a client cannot forbid that
by itself; but the owner must see it. The client therefore compares where the server
stands with the last line of the log: a lower number of the turn, or fewer of this
client's steps, means that the server has gone back. A name of a run that the log does
not know means that it has begun again.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lightsplit.errors import RollbackError, RunError
from lightsplit.results.appending import append_line, whole_lines

FILE_NAME = "turns.jsonl"


@dataclass(frozen=True)
class Standing:
    """Where a run stood when the client heard of it last.

    Attributes:
        turn: number of the turn.
        steps: of this client that the server had applied.
    """

    turn: int
    steps: int


class ClientLog:
    """Notes every turn of one client; append-only.

    Args:
        folder: of the client's state; None keeps the log in memory alone.
        allows_rollback: whether the client follows a server that went back.
        in_rounds: whether the run has rounds. A step that arrives too late for its
            round does not count, so having fewer steps in a later round is not a
            rollback.
    """

    def __init__(
        self,
        folder: Path | None,
        *,
        allows_rollback: bool = True,
        in_rounds: bool = False,
    ) -> None:
        self._in_rounds = in_rounds
        self._file = None if folder is None else folder / FILE_NAME
        self._allows_rollback = allows_rollback
        self._last: dict[str, Standing] = {}
        self._read()

    def note(
        self, event: str, run: str, turn: int, steps: int | None = None
    ) -> str | None:
        """Add where the server stands; return a warning if that is further back.

        Args:
            event: what happened, in a word or two.
            run: the run's name.
            turn: the turn's number.
            steps: of this client that are applied; None if the server did not say.

        Raises:
            RollbackError: it went back, and this client does not go along.
        """
        now = Standing(turn, self._steps(run) if steps is None else steps)
        warning = self._warning(run, now)
        if warning is not None and not self._allows_rollback:
            self._append("refused", run, now)
            raise RollbackError(
                f"{warning}. This client was told not to go along (--no-rollback)"
            )
        if warning is not None:
            self._append("went back", run, now)
        self._append(event, run, now)
        self._last[run] = now
        return warning

    def steps_in(self, run: str) -> int | None:
        """Return this client's steps in a run; None if the log has no step of any."""
        if not any(one.steps for one in self._last.values()):
            return None
        return self._steps(run)

    def _steps(self, run: str) -> int:
        return self._last[run].steps if run in self._last else 0

    def _warning(self, run: str, now: Standing) -> str | None:
        if not self._last:
            return None
        last = self._last.get(run)
        if last is None:
            known = ", ".join(self._last)
            return (
                f"the server began another run, {run}, at turn {now.turn}; this "
                f"client's log knows {known}. Use a new --state folder for a new run"
            )
        has_fewer = now.steps < last.steps
        if self._in_rounds and now.turn > last.turn:
            has_fewer = False
        if now.turn >= last.turn and not has_fewer:
            return None
        return (
            f"the server went back in run {run}: from turn {last.turn} with "
            f"{last.steps} steps of this client to turn {now.turn} with {now.steps}. "
            "Unless it was restarted from a checkpoint, or a detector undid a turn, "
            "ask its operator why"
        )

    def _append(self, event: str, run: str, at: Standing) -> None:
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event,
            "run": run,
            "turn": at.turn,
            "steps": at.steps,
        }
        if self._file is not None:
            append_line(self._file, json.dumps(line).encode())

    def _read(self) -> None:
        if self._file is not None:
            for number, line in whole_lines(self._file):
                self._remember(_parsed(self._file, number, line))

    def _remember(self, line: dict[str, Any]) -> None:
        if line["event"] not in ("went back", "refused"):
            self._last[line["run"]] = Standing(line["turn"], line["steps"])


def _parsed(file: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
        Standing(int(found["turn"]), int(found["steps"]))
        return {**found, "run": str(found["run"]), "event": str(found["event"])}
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"line {number} of {file} is not a line of a client's log, so it cannot "
            "say whether the server went back; mend the line or move the file away"
        ) from error

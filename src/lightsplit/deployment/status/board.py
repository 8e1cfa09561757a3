"""The newest picture of a run, for displays outside the process.

The server's loop takes a picture a few times a second. Readers get the last one: they
never take the run's lock, so a slow or hostile reader cannot delay a step. A loop that
stands still leaves an old picture behind, and that is how ill health shows.
"""

import time
from pathlib import Path
from typing import Any

from lightsplit.deployment.coordinator import Coordinator
from lightsplit.deployment.roster import Member
from lightsplit.deployment.status.curve import Curve
from lightsplit.deployment.status.memory import resident_bytes
from lightsplit.deployment.status.rate import Rate

UP = ("code", "labels", "output_gradient")  # messages of training steps
DOWN = ("output", "code_gradient")
LONGEST_SILENCE_SECONDS = 60.0
_MOST_VERDICTS = 50


class Board:
    """Keeps the newest picture of one run.

    Args:
        checkpoint: the folder of the run's checkpoints.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._latest = checkpoint / "latest"
        self._started = time.time()
        self._losses = Curve()
        self._rate = Rate()
        self._taken = time.monotonic()
        self._picture: dict[str, Any] = {}

    def update(self, coordinator: Coordinator) -> None:
        """Take a picture of the run as it is now."""
        picture = self._take(coordinator)
        losses = [m["loss"] for m in picture["clients"] if m["loss"] is not None]
        if losses:
            self._losses.add(picture["steps"], sum(losses) / len(losses))
        self._taken = time.monotonic()
        rate = self._rate.at(self._taken, picture["steps"])
        self._picture = {**picture, "steps_per_second": rate}

    @property
    def picture(self) -> dict[str, Any]:
        """The newest picture, with what changes by the second."""
        return {
            **self._picture,
            "losses": [list(point) for point in self._losses.points],
            "checkpoint_age_seconds": self._checkpoint_age(),
            "resident_bytes": resident_bytes(),
            "uptime_seconds": time.time() - self._started,
        }

    @property
    def trouble(self) -> str | None:
        """What is wrong with the server, in one sentence; None if nothing is."""
        silence = time.monotonic() - self._taken
        if silence > LONGEST_SILENCE_SECONDS:
            return f"the server's loop has stood still for {silence:.0f} seconds"
        return None

    def _checkpoint_age(self) -> float | None:
        try:
            return max(0.0, time.time() - self._latest.stat().st_mtime)
        except OSError:  # there is none yet
            return None

    def _take(self, coordinator: Coordinator) -> dict[str, Any]:
        progress, at_work = coordinator.progress, coordinator.at_work()
        finished = coordinator.finished
        return {
            "run": coordinator.run_name,
            "expected_clients": coordinator.contract.clients,
            "turns": progress.turns,
            "rounds": coordinator.round_number,
            "steps": progress.steps,
            "samples": progress.samples,
            "training_seconds": progress.seconds,
            "computing_seconds": coordinator.computing.seconds,
            "computing_share": coordinator.computing.share,
            "bytes": dict(progress.bytes),
            "finished": None if finished is None else finished.reason,
            "refusals": coordinator.refusals.by_code(),
            "history": list(progress.history),
            "verdicts": list(progress.verdicts[-_MOST_VERDICTS:]),
            "clients": [
                _client(member, progress.client_steps[member.index], at_work)
                for member in coordinator.members
            ],
        }


def _client(member: Member, steps: int, at_work: set[int]) -> dict[str, Any]:
    counts = member.meter.by_kind()
    up, down = (sum(counts[kind] for kind in kinds) for kinds in (UP, DOWN))
    return {
        "name": member.name,
        "index": member.index,
        "is_connected": member.peer is not None,
        "is_in_turn": member.index in at_work,
        "steps": steps,
        "up": up,
        "down": down,
        "other": counts["total"] - up - down,
        "loss": member.loss,
        "waited_seconds": member.waited_seconds,
    }

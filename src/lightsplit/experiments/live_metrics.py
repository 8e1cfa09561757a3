"""metrics.jsonl, written while the run goes on; callbacks get the same lines."""

from pathlib import Path
from typing import Any

from lightsplit.deployment.join_options import TurnFigures
from lightsplit.results import RunFolder
from lightsplit.runs.callbacks import Callbacks
from lightsplit.transports import ByteMeter

Line = dict[str, Any]


class LiveMetrics:
    """Writes and tells every line as soon as it is known.

    Args:
        folder: of the run; None writes nothing.
        callbacks: that get each line.
    """

    def __init__(
        self, folder: RunFolder | None, callbacks: Callbacks | None = None
    ) -> None:
        self._folder = folder
        self._callbacks = callbacks or Callbacks()
        self._known: list[Line] | None = None

    def update(self, history: list[dict[str, Any]]) -> None:
        """Write and tell the lines of ``history`` that are new.

        The first update replaces the file, and so does a history that went back: a
        server that resumes has lost the lines since its checkpoint.
        """
        lines = list(history)  # it may grow meanwhile
        same = _shared(self._known or [], lines)
        if self._folder is not None:
            if self._known is None or same < len(self._known):
                self._folder.write_metrics(lines)
            else:
                for line in lines[same:]:
                    self._folder.append_metrics(line)
        for line in lines[same:]:
            self._callbacks.log(line)
        self._known = lines


class ClientMetrics:
    """Writes and tells one line for each turn of a client.

    A turn that is repeated takes the place of its first line and of all after it.

    Args:
        folder: of the client's state, with the lines of earlier processes.
        callbacks: that get each line.
        meter: of this client's bytes.
    """

    def __init__(
        self, folder: Path | None, callbacks: Callbacks, meter: ByteMeter
    ) -> None:
        place = None if folder is None else RunFolder(folder)
        self._live = LiveMetrics(place, callbacks)
        self._meter = meter
        self._lines: list[dict[str, Any]] = []
        if place is not None and place.metrics_file.is_file():
            self._lines = [one for one in place.read_metrics() if "turn" in one]

    def add(self, turn: TurnFigures) -> None:
        """Add the line of a turn that has ended."""
        new = _line(turn, self._meter.by_kind()["total"])
        self._lines = [*(one for one in self._lines if _place(one) < _place(new)), new]
        self._live.update(self._lines)


def _place(line: Line) -> tuple[int, bool]:
    """Return where a line belongs: a turn's training comes before its evaluation."""
    return line["turn"], "train_loss" not in line


def _line(turn: TurnFigures, sent: int) -> dict[str, Any]:
    line: dict[str, Any] = {"turn": turn.turn, "step": turn.steps}
    if turn.loss is not None:
        line["train_loss"] = turn.loss
    line |= {f"test_{name}": value for name, value in turn.test.items()}
    if turn.objectives:
        line["objectives"] = dict(turn.objectives)
    return {**line, "bytes": sent}


def _shared(one: list[Line], other: list[Line]) -> int:
    """Return how many lines are the same from the start on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))

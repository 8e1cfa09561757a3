"""What a run tells while it goes on: to loggers, and to a user's own code.

    train, serve   one line per evaluation ─┐
    join           one line per turn ───────┴─► metrics.jsonl and Callback.log(line)

A run that resumes tells its lines from the first one on, so a callback never has to
know what an earlier process has told.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from lightsplit.errors import LightSplitError, RunError
from lightsplit.user_code import one_line_errors

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunStart:
    """What a callback is told first.

    Attributes:
        command: that was started.
        name: of the run's folder, or of the client.
        folder: of the run, or of the client's state; None if there is none.
        settings: of the experiment, by name.
    """

    command: Literal["train", "serve", "join"]
    name: str
    folder: Path | None
    settings: Mapping[str, Any]


class Callback:
    """Follows a run; override what you need.

    An error in ``start`` ends the run before its first step. An error in ``log`` or
    ``end`` is shown once, and the run goes on without this callback.
    """

    def start(self, run: RunStart) -> None:
        """Learn which run it is; called once, before anything else."""

    def log(self, line: Mapping[str, Any]) -> None:
        """Learn a line of metrics.jsonl; ``scalars`` gives its numbers by name."""

    def end(self, *, is_finished: bool) -> None:
        """Learn that the process leaves the run, and whether the run is finished."""


class Callbacks:
    """Tells several callbacks, and ends them whatever happens in the block."""

    def __init__(self, members: Sequence[Callback] = ()) -> None:
        self._waiting = list(members)
        self._members: list[Callback] = []
        self.is_finished = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._tell(lambda member: member.end(is_finished=self.is_finished))

    def start(self, run: RunStart) -> None:
        """Tell each of them the run, the first time that this is called."""
        while self._waiting:
            member = self._waiting.pop(0)
            with one_line_errors(f"{type(member).__name__} cannot start", RunError):
                member.start(run)
            self._members.append(member)

    def log(self, line: Mapping[str, Any]) -> None:
        """Tell each of them a line."""
        self._tell(lambda member: member.log(line))

    def _tell(self, call: Callable[[Callback], None]) -> None:
        for member in list(self._members):
            name = type(member).__name__
            try:
                with one_line_errors(f"{name} is left out from now on", RunError):
                    call(member)
            except LightSplitError as error:
                self._members.remove(member)
                _LOG.warning("%s", error)


def scalars(line: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a line, such as ``train/loss`` and ``test/auroc``.

    Where several clients evaluate, each one's figures are ``client-0/auroc`` and so on,
    or over the network ``client-NAME/auroc``.

    Example:
        >>> scalars({"step": 8, "train_loss": 0.5, "test_auroc": 0.9, "bytes": 64})
        {'train/loss': 0.5, 'bytes/total': 64.0, 'test/auroc': 0.9}
    """
    found = {"train/loss": line.get("train_loss"), "bytes/total": line.get("bytes")}
    for name, value in line.items():
        if name.startswith("test_"):
            found[name.replace("_", "/", 1)] = value
    for name, value in line.get("objectives", {}).items():
        found[f"objectives/{name}"] = value
    clients = line.get("client_figures", [])
    if len(clients) > 1:
        called = line.get("client_names", range(len(clients)))
        for client, figures in zip(called, clients, strict=True):
            found |= {f"client-{client}/{name}": v for name, v in figures.items()}
    return {name: float(value) for name, value in found.items() if value is not None}

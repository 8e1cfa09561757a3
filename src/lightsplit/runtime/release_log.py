"""A client's own list of the codes that it has sent and must not change.

    STATE/released.jsonl   one line per message, only ever added to: which samples or
                           which step, and the SHA-256 of the codes as they travelled

A line is on the disk before its codes leave. A client that was killed, or whose server
went back to an earlier checkpoint, may have to send codes again. It sends the same ones
or none: whatever the server asks for, it learns no more about a sample.

Where codes are sent once, the list has samples; where each release of a code is counted
(``ReleaseBudget``), it has the steps and evaluations in which codes were sent.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from lightsplit.errors import RunError
from lightsplit.protocol import CodeMessage, Release, Reply, Request
from lightsplit.results import tensors
from lightsplit.results.appending import append_line, whole_lines
from lightsplit.transports import Send

FILE_NAME = "released.jsonl"
_Place = tuple[str, int, int]  # kind, number, batch of an evaluation
_KINDS = {
    "training": "the codes of its training samples from number {} on",
    "test": "the codes of its test samples from number {} on",
    "step": "the codes of its step {}",
    "evaluation": "the codes of its evaluation after step {}",
}


class ReleaseLog:
    """Remembers what was released.

    Args:
        folder: of the client's state; None remembers as long as the process lives.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._file = None if folder is None else folder / FILE_NAME
        self._known: dict[_Place, str] = {}
        if self._file is not None:
            for number, line in whole_lines(self._file):
                self._known |= _parsed(self._file, number, line)

    @property
    def evaluations(self) -> set[int]:
        """The steps after which test samples were sent."""
        return {number for kind, number, _ in self._known if kind == "evaluation"}

    def note(self, message: Release | CodeMessage, batch: int = 0) -> None:
        """Remember a message before it is sent; refuse other codes in its place.

        An evaluation has several messages: ``batch`` counts them.
        """
        place, digest = _place(message, batch), _digest(message)
        before = self._known.get(place)
        if before == digest:
            return
        if before is not None:
            kind, number, _ = place
            raise RunError(
                f"this client has sent {_KINDS[kind].format(number)}, and now they "
                "came out otherwise, so they are not sent: data, settings or head have "
                "changed; use a new --state folder for a new run"
            )
        self._known[place] = digest
        if self._file is not None:
            line = {"kind": place[0], "number": place[1], "sha256": digest}
            line |= {"batch": batch} if batch else {}
            append_line(self._file, json.dumps(line).encode())


class ReleaseBudget:
    """A mod that never sends more codes of a sample than the promise allows.

    Args:
        log: of the client.
        releases: of one sample: each test sample is in this many evaluations.
        steps: returns in how many steps the client may send codes.
    """

    def __init__(
        self, log: ReleaseLog, releases: int, steps: Callable[[], int]
    ) -> None:
        self._log = log
        self._releases = releases
        self._steps = steps
        self._batch = 0  # of the evaluation

    def begin_evaluation(self) -> None:
        """Treat the next codes outside training as those of a whole test set."""
        self._batch = 0

    def __call__(self, request: Request, call_next: Send) -> Reply:
        """Pass a request on, if its codes are counted."""
        if isinstance(request, CodeMessage):
            if request.is_training:
                self._note_step(request)
            else:
                self._note_evaluation(request)
        return call_next(request)

    def _note_step(self, request: CodeMessage) -> None:
        most = self._steps()
        if request.step >= most:
            raise RunError(
                f"differential privacy was counted for {most:,} steps of this client, "
                f"and the server asks for step {request.step + 1:,}: nothing was sent"
            )
        self._log.note(request)

    def _note_evaluation(self, request: CodeMessage) -> None:
        done = self._log.evaluations
        if request.step not in done and len(done) >= self._releases:
            raise RunError(
                f"differential privacy was counted for {self._releases:,} evaluations "
                "of test samples, and the server asks for another one: nothing was sent"
            )
        self._log.note(request, self._batch)
        self._batch += 1


def _place(message: Release | CodeMessage, batch: int) -> _Place:
    if isinstance(message, CodeMessage):
        kind = "step" if message.is_training else "evaluation"
        return kind, message.step, batch
    return "training" if message.is_training else "test", message.first, batch


def _digest(message: Release | CodeMessage) -> str:
    code = message.code
    written = {str(i): one for i, one in enumerate((code.values, *code.side))}
    return hashlib.sha256(tensors.to_bytes(written)).hexdigest()


def _parsed(file: Path, number: int, line: bytes) -> dict[_Place, str]:
    try:
        found = json.loads(line)
        place = str(found["kind"]), int(found["number"]), int(found.get("batch", 0))
        if place[0] in _KINDS:
            return {place: str(found["sha256"])}
    except (ValueError, KeyError, TypeError):
        pass
    raise RunError(
        f"line {number} of {file} does not say which codes were sent; mend the line, "
        "or use a new --state folder for a new run"
    )

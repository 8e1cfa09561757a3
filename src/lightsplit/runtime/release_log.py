"""A client's own list of the codes that it has sent once.

    STATE/released.jsonl   one line per message, only ever added to: which samples, and
                           the SHA-256 of their codes as they travelled

A line is on the disk before its codes leave. A client that was killed, or whose server
went back to an earlier checkpoint, may have to send codes again. It sends the same ones
or none: what the server sees of a sample does not add up, whatever the server asks for.
"""

import hashlib
import json
from pathlib import Path

from lightsplit.errors import RunError
from lightsplit.protocol import Release
from lightsplit.results import tensors
from lightsplit.results.appending import append_line, whole_lines

FILE_NAME = "released.jsonl"
_Samples = tuple[bool, int]


class ReleaseLog:
    """Remembers what was released.

    Args:
        folder: of the client's state; None remembers as long as the process lives.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._file = None if folder is None else folder / FILE_NAME
        self._known: dict[_Samples, str] = {}
        if self._file is not None:
            for number, line in whole_lines(self._file):
                self._known |= _parsed(self._file, number, line)

    def note(self, message: Release) -> None:
        """Remember a message before it is sent; refuse other codes of its samples."""
        samples, digest = (message.is_training, message.first), _digest(message)
        before = self._known.get(samples)
        if before == digest:
            return
        if before is not None:
            kind = "training" if message.is_training else "test"
            raise RunError(
                f"this client has sent the codes of its {kind} samples from number "
                f"{message.first} on, and now they came out otherwise, so they are not "
                "sent: data, settings or head have changed; use a new --state folder "
                "for a new run"
            )
        self._known[samples] = digest
        if self._file is not None:
            line = {"training": samples[0], "first": samples[1], "sha256": digest}
            append_line(self._file, json.dumps(line).encode())


def _digest(message: Release) -> str:
    code = message.code
    written = {str(i): one for i, one in enumerate((code.values, *code.side))}
    return hashlib.sha256(tensors.to_bytes(written)).hexdigest()


def _parsed(file: Path, number: int, line: bytes) -> dict[_Samples, str]:
    try:
        found = json.loads(line)
        samples = (bool(found["training"]), int(found["first"]))
        return {samples: str(found["sha256"])}
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"line {number} of {file} does not say which codes were sent; mend the "
            "line, or use a new --state folder for a new run"
        ) from error

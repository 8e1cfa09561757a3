"""What a recording needs beside its messages: the experiment, and where the data lie.

    STATE/experiment.toml   every setting
    STATE/recording.json    the folder of the owner's data
    STATE/sent.tape         the messages (transports/tape.py)

They are written when the server admits the client, so that a client that is killed can
still be audited.
"""

import json
from pathlib import Path
from typing import NamedTuple

from lightsplit.errors import RunError
from lightsplit.experiments.config import Experiment
from lightsplit.results import RunFolder, atomic

FILE_NAME = "recording.json"


class DataPlace(NamedTuple):
    """Where a client's data lie: in the owner's folder, or in that of datasets."""

    own_data: Path | None = None
    data_dir: Path | None = None


def begin_recording(tape: Path, experiment: Experiment, data: DataPlace) -> None:
    """Write the files beside the messages, unless they are there."""
    file = tape.parent / FILE_NAME
    if file.exists():
        return
    RunFolder(tape.parent).write_experiment(experiment.to_toml())
    place = {
        name: None if path is None else str(path.resolve())
        for name, path in data._asdict().items()
    }
    atomic.write_bytes(file, json.dumps(place).encode() + b"\n", is_secret=True)


def recorded_data(folder: Path) -> DataPlace:
    """Return where the client's data were when the recording began."""
    file = folder / FILE_NAME
    try:
        place = json.loads(file.read_text())
        known = {name: Path(path) for name, path in place.items() if path is not None}
        return DataPlace(**known)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise RunError(f"{file} cannot be read: {error}") from error

"""A folder of checkpoints; a complete one can be loaded at any moment.

    checkpoint/
      latest                 the name of the newest complete checkpoint
      step-00000940/         its files, and progress.json
      step-00000900/         the one before it

A checkpoint is written under another name and renamed when it is complete, then
``latest`` is replaced, then checkpoints older than these two are deleted. To go back to
the one before, write its name into ``latest``.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from lightsplit.errors import ContractError, RunError
from lightsplit.results import atomic


def exists(folder: Path) -> bool:
    """Return whether ``folder`` holds a checkpoint."""
    return (folder / "latest").is_file()


def is_due(every: int, steps: int, turn_steps: int, *, is_evaluated: bool) -> bool:
    """Return whether a checkpoint is due after a turn.

    Args:
        every: steps between checkpoints; 0 is at each evaluation.
        steps: that all clients have done after the turn.
        turn_steps: of the turn.
        is_evaluated: whether an evaluation followed the turn.
    """
    return steps % every < turn_steps if every else is_evaluated


def write(
    folder: Path, steps: int, files: dict[str, bytes], content: dict[str, Any]
) -> Path:
    """Write ``files`` and progress.json as the newest checkpoint, atomically."""
    name = f"step-{steps:08d}"
    before = _newest(folder).name if exists(folder) else ""
    if before == name:
        return folder / name
    atomic.make_folder(folder)
    atomic.remove_drafts(folder)
    draft = folder / f"{name}.tmp"
    draft.mkdir()
    progress = json.dumps(content).encode()
    for file, blob in {**files, "progress.json": progress}.items():
        atomic.write_new(draft / file, blob)
    atomic.sync_folder(draft)
    shutil.rmtree(folder / name, ignore_errors=True)
    draft.rename(folder / name)
    atomic.sync_folder(folder)  # the name is there before ``latest`` says it
    atomic.write_text(folder / "latest", name)
    _remove_others(folder, {name, before})
    return folder / name


def read(folder: Path, contract: str) -> tuple[Path, dict[str, Any]]:
    """Return the newest checkpoint's folder and progress.json."""
    newest = _newest(folder)
    content = _read_progress(newest / "progress.json")
    if content["contract"] != contract:
        raise ContractError(
            f"{newest} is of another run: expected contract {contract[:12]}, "
            f"got {content['contract'][:12]}; use the settings of that run"
        )
    return newest, content


def _remove_others(folder: Path, kept: set[str]) -> None:
    for other in folder.glob("step-*"):
        if other.name not in kept:
            shutil.rmtree(other, ignore_errors=True)


def _newest(folder: Path) -> Path:
    if not exists(folder):
        raise RunError(f"{folder} holds no checkpoint")
    name = _text(folder / "latest").strip()
    newest = folder / name
    if not name or newest.parent != folder or not newest.is_dir():
        raise RunError(f"{folder / 'latest'} names {name!r}, which does not exist")
    return newest


def _read_progress(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(_text(path))
    except json.JSONDecodeError as error:
        raise RunError(f"{path} is damaged: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("contract"), str):
        raise RunError(f"{path} is damaged: it names no contract")
    return content


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except UnicodeDecodeError as error:
        raise RunError(f"{path} is damaged: {error}") from error
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from error

"""What a run is continued from: safetensors and JSON, nothing unpickled.

    checkpoint/
      latest                 the name of the newest whole checkpoint
      step-00000940/
        server.safetensors   weights, buffers and optimizer of the server side
        client-0.safetensors the same of each client side (one file if heads are shared)
        residual-0.safetensors  what hand-offs in int8 left with each client
        guard.safetensors    what a detector remembers, where there is one
        progress.json        counters and the contract's digest

A checkpoint is written under another name and renamed when whole, then ``latest`` is
replaced, then older ones go: at any moment there is one that can be loaded.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightsplit.errors import ContractError, RunError
from lightsplit.results import atomic, tensors
from lightsplit.runtime import ClientSide
from lightsplit.training.progress import Progress
from lightsplit.training.trainer import Trainer

NOTHING: Mapping[str, Any] = {}


def save(
    folder: Path,
    trainer: Trainer,
    contract: str,
    *,
    files: Mapping[str, bytes] = NOTHING,
    content: Mapping[str, Any] = NOTHING,
) -> Path:
    """Write a checkpoint of ``trainer`` and return its folder.

    Args:
        folder: of all checkpoints of the run.
        trainer: whose state is kept.
        contract: the digest of the run's contract.
        files: more of them, by name, for whoever adds to a run.
        content: the same for progress.json.
    """
    whole = {"server.safetensors": tensors.to_bytes(trainer.server.side.state())}
    for index, side in enumerate(_client_sides(trainer)):
        whole[f"client-{index}.safetensors"] = tensors.to_bytes(side.state())
    for index, client in enumerate(trainer.clients):
        if client.residual:
            name = f"residual-{index}.safetensors"
            whole[name] = tensors.to_bytes(client.residual)
    if trainer.guard is not None:
        whole["guard.safetensors"] = tensors.to_bytes(trainer.guard.state())
    known = {"contract": contract, "progress": trainer.progress.to_dict()}
    return write(
        folder, trainer.progress.steps, {**files, **whole}, {**content, **known}
    )


def load(folder: Path, trainer: Trainer, contract: str) -> None:
    """Bring ``trainer`` to the newest checkpoint in ``folder``."""
    newest, content = read(folder, contract)
    clients = len(trainer.clients)
    progress = Progress.from_dict(content.get("progress"), clients=clients)
    trainer.server.side.load(tensors.load(newest / "server.safetensors"))
    for index, side in enumerate(_client_sides(trainer)):
        side.load(tensors.load(newest / f"client-{index}.safetensors"))
    if trainer.guard is not None:
        trainer.guard.load(tensors.load(newest / "guard.safetensors"))
    trainer.progress = progress
    trainer.meter.restore(trainer.progress.bytes)
    for client, steps in zip(
        trainer.clients, trainer.progress.client_steps, strict=True
    ):
        client.steps = steps
    for index, client in enumerate(trainer.clients):
        path = newest / f"residual-{index}.safetensors"
        client.residual = tensors.load(path) if path.exists() else {}


def exists(folder: Path) -> bool:
    """Say whether ``folder`` holds a checkpoint."""
    return (folder / "latest").is_file()


def is_due(every: int, steps: int, turn_steps: int, *, is_evaluated: bool) -> bool:
    """Say whether to save after a turn, ``steps`` being over then.

    ``every`` is in steps; 0 is at each evaluation.
    """
    return steps % every < turn_steps if every else is_evaluated


def write(
    folder: Path, steps: int, files: dict[str, bytes], content: dict[str, Any]
) -> Path:
    """Write ``files`` and progress.json as the newest checkpoint, in one step."""
    name = f"step-{steps:08d}"
    if exists(folder) and _newest(folder).name == name:
        return folder / name
    draft = folder / f"{name}.tmp"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for file, blob in files.items():
        atomic.write_bytes(draft / file, blob)
    atomic.write_text(draft / "progress.json", json.dumps(content))
    shutil.rmtree(folder / name, ignore_errors=True)
    draft.rename(folder / name)
    atomic.write_text(folder / "latest", name)
    for other in folder.glob("step-*"):
        if other.name != name:
            shutil.rmtree(other, ignore_errors=True)
    return folder / name


def read(folder: Path, contract: str) -> tuple[Path, dict[str, Any]]:
    """Return the newest checkpoint's folder and progress.json."""
    newest = _newest(folder)
    content = _read_progress(newest / "progress.json")
    if content["contract"] != contract:
        raise ContractError(
            f"{newest} is of another run: contract {content['contract'][:12]} there, "
            f"{contract[:12]} here"
        )
    return newest, content


def _client_sides(trainer: Trainer) -> list[ClientSide]:
    if trainer.has_shared_heads:
        return [trainer.clients[0].side]
    return [client.side for client in trainer.clients]


def _newest(folder: Path) -> Path:
    if not exists(folder):
        raise RunError(f"{folder} holds no checkpoint")
    name = _text(folder / "latest").strip()
    newest = folder / name
    if not name or newest.parent != folder or not newest.is_dir():
        raise RunError(f"{folder / 'latest'} names {name!r}, which is not there")
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
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path} is damaged: {error}") from error

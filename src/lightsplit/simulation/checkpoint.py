"""The checkpoint of a run in one process: safetensors and JSON, no pickle.

    checkpoint/
      latest                 the name of the newest complete checkpoint
      step-00000940/
        server.safetensors   weights, buffers and optimizer of the server side
        client-0.safetensors the same of each client side (one file if heads are shared)
        kept-0.safetensors   the part of a shared side that stays with a client
        guard.safetensors    the detector's memory, if the run has a detector
        progress.json        counters and the contract's digest

``runs.checkpoint_folder`` writes the files so that a complete checkpoint can be loaded
at any moment.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightsplit.results import tensors
from lightsplit.runs import checkpoint_folder
from lightsplit.runs.progress import Progress
from lightsplit.runtime import ClientSide, OnceClient
from lightsplit.simulation.trainer import Trainer

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
        files: further ones, by name.
        content: further entries of progress.json.
    """
    for side in (trainer.server.side, *_client_sides(trainer)):
        side.check_finite()
    whole = {"server.safetensors": tensors.to_bytes(trainer.server.side.state())}
    for index, side in enumerate(_client_sides(trainer)):
        whole[f"client-{index}.safetensors"] = tensors.to_bytes(side.state())
    for index, client in enumerate(trainer.clients):
        if client.kept:
            whole[f"kept-{index}.safetensors"] = tensors.to_bytes(client.kept)
    if trainer.guard is not None:
        whole["guard.safetensors"] = tensors.to_bytes(trainer.guard.state())
    known = {"contract": contract, "progress": trainer.progress.to_dict()}
    return checkpoint_folder.write(
        folder, trainer.progress.steps, {**files, **whole}, {**content, **known}
    )


def load(folder: Path, trainer: Trainer, contract: str) -> None:
    """Bring ``trainer`` to the newest checkpoint in ``folder``."""
    newest, content = checkpoint_folder.read(folder, contract)
    clients = len(trainer.clients)
    progress = Progress.from_dict(content.get("progress"), clients=clients)
    trainer.server.side.load(tensors.load(newest / "server.safetensors"))
    for index, side in enumerate(_client_sides(trainer)):
        side.load(tensors.load(newest / f"client-{index}.safetensors"))
    if trainer.guard is not None:
        trainer.guard.load(tensors.load(newest / "guard.safetensors"))
    trainer.state.progress = progress
    trainer.meter.restore(progress.bytes)
    for client, steps in zip(
        trainer.clients, trainer.progress.client_steps, strict=True
    ):
        client.steps = steps
        if isinstance(client, OnceClient):
            known = trainer.server.side.released
            client.tested = known.count(client.index, is_training=False)
    for index, client in enumerate(trainer.clients):
        path = newest / f"kept-{index}.safetensors"
        client.kept = tensors.load(path) if path.exists() else {}


def _client_sides(trainer: Trainer) -> list[ClientSide]:
    if trainer.has_shared_heads:
        return [trainer.clients[0].side]
    return [client.side for client in trainer.clients]

"""The checkpoint of a networked run at the server.

    checkpoint/step-00000940/
        server.safetensors   weights, buffers and optimizer of the server side
        side.sealed          the side of the last turn; empty if no side travels
        guard.safetensors    the detector's memory, if the run has a detector
        progress.json        counters, clients, the run's name, the contract's digest

``runs.checkpoint_folder`` writes the folder and names it in ``latest``.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from lightsplit.errors import RunError
from lightsplit.protocol import Contract
from lightsplit.results import tensors
from lightsplit.runs import checkpoint_folder
from lightsplit.runs.progress import Progress
from lightsplit.runtime import State

exists = checkpoint_folder.exists


class ServerState(NamedTuple):
    """Everything that a server needs to resume from a boundary.

    Attributes:
        run: the run's random name.
        number: of the next turn.
        members: as ``Roster.to_list`` returns them.
        progress: of the run.
        side: the sealed side of the last turn.
        server: the server side.
        guard: the guard's memory, if the run has a guard.
        steps_before: of each client at the checkpoint before this one.
        number_before: of the next turn at the checkpoint before this one.
        rounds: the state of a parallel run's rounds; empty in other runs.
    """

    run: str
    number: int
    members: list[dict[str, Any]]
    progress: Progress
    side: bytes
    server: State
    guard: State | None
    steps_before: list[int]
    number_before: int = 0
    rounds: Mapping[str, Any] = MappingProxyType({})


def write(folder: Path, contract: Contract, state: ServerState) -> None:
    """Write ``state`` as the newest checkpoint, in one step."""
    files = {
        "server.safetensors": tensors.to_bytes(state.server),
        "side.sealed": state.side,
    }
    if state.guard is not None:
        files["guard.safetensors"] = tensors.to_bytes(state.guard)
    content = {
        "contract": contract.digest,
        "run": state.run,
        "number": state.number,
        "members": state.members,
        "progress": state.progress.to_dict(),
        "steps_before": state.steps_before,
        "number_before": state.number_before,
        "rounds": dict(state.rounds),
    }
    checkpoint_folder.write(folder, state.progress.steps, files, content)


def read(folder: Path, contract: Contract, *, has_guard: bool) -> ServerState:
    """Return the newest checkpoint in ``folder``."""
    newest, content = checkpoint_folder.read(folder, contract.digest)
    progress = Progress.from_dict(content.get("progress"), clients=contract.clients)
    try:
        run, number = str(content["run"]), int(content.get("number", progress.turns))
        members = [_member(entry) for entry in content["members"]]
        before = [int(steps) for steps in content["steps_before"]]
        number_before = int(content.get("number_before", 0))
        rounds = dict(content.get("rounds", {}))
        side = (newest / "side.sealed").read_bytes()
    except (KeyError, TypeError, ValueError, FileNotFoundError) as error:
        raise RunError(f"{newest} is not a server's checkpoint: {error!r}") from error
    return ServerState(
        run,
        number,
        members,
        progress,
        side,
        server=tensors.load(newest / "server.safetensors"),
        guard=tensors.load(newest / "guard.safetensors") if has_guard else None,
        steps_before=before,
        number_before=number_before,
        rounds=rounds,
    )


def _member(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a client as it was written; raise KeyError if an entry is missing."""
    return {key: entry[key] for key in ("name", "batches", "bytes")}

"""What a networked run is continued from at the server.

    checkpoint/step-00000940/
        server.safetensors   weights, buffers and optimizer of the server side
        side.sealed          what the last turn handed on; empty if nothing travels
        guard.safetensors    what a detector remembers, where there is one
        progress.json        counters, clients, the run's name, the contract's digest

The folder lies beside ``latest``, as that of a run in one process does.
"""

from pathlib import Path
from typing import Any, NamedTuple

from lightsplit.errors import RunError
from lightsplit.protocol import Contract
from lightsplit.results import tensors
from lightsplit.runtime import State
from lightsplit.training import checkpoint
from lightsplit.training.progress import Progress

exists = checkpoint.exists


class ServerState(NamedTuple):
    """All that a server must know to go on from a boundary.

    Attributes:
        run: the run's random name.
        number: of the next turn.
        members: as ``Membership.to_list`` returns them.
        progress: of the run.
        side: sealed, of the last turn.
        server: the server side.
        guard: what it remembers, if there is one.
    """

    run: str
    number: int
    members: list[dict[str, Any]]
    progress: Progress
    side: bytes
    server: State
    guard: State | None


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
    }
    checkpoint.write(folder, state.progress.steps, files, content)


def read(folder: Path, contract: Contract, *, has_guard: bool) -> ServerState:
    """Return the newest checkpoint in ``folder``."""
    newest, content = checkpoint.read(folder, contract.digest)
    progress = Progress.from_dict(content.get("progress"), clients=contract.clients)
    try:
        run, number = str(content["run"]), int(content.get("number", progress.turns))
        members = [_member(entry) for entry in content["members"]]
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
    )


def _member(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a client as it was written; raise if something is missing."""
    return {key: entry[key] for key in ("name", "batches", "bytes")}

"""The server's weights on disk, for loops that clients drive themselves.

    folder/
      latest                the newest complete save
      update-00000040/
        server.safetensors  weights, buffers and optimizer of the server
        clients.json        updates of each client, the run's name, the contract

Some older saves stay, so that the server can follow a client back to its checkpoint.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lightsplit.errors import ContractError, RunError
from lightsplit.results import atomic, tensors
from lightsplit.runtime import State

KEPT_SAVES = 4


class Save(NamedTuple):
    """What a save says without its weights.

    Attributes:
        path: of its folder.
        run: the run's random name.
        applied: updates of each client that its weights have, in the order of indices.
    """

    path: Path
    run: str
    applied: dict[str, int]

    def state(self) -> State:
        """Return the weights."""
        return tensors.load(self.path / "server.safetensors")


class Saves:
    """The saves of one run.

    Args:
        folder: of the saves.
        contract: digest of the run's contract.
        keep: how many of the newest stay.
    """

    def __init__(self, folder: Path, contract: str, keep: int = KEPT_SAVES) -> None:
        self._folder = folder
        self._contract = contract
        self._keep = keep

    def write(self, run: str, applied: Mapping[str, int], state: State) -> None:
        """Write a save; it is complete or absent."""
        try:
            self._write(run, applied, state)
        except OSError as error:
            raise RunError(
                f"cannot save the server in {self._folder}: {error.strerror or error}; "
                "the save before it is whole: mend this and start again with the folder"
            ) from error

    def _write(self, run: str, applied: Mapping[str, int], state: State) -> None:
        name = f"update-{sum(applied.values()):08d}"
        draft = self._folder / f"{name}.tmp"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        tensors.save(draft / "server.safetensors", state)
        content = {"contract": self._contract, "run": run, "applied": dict(applied)}
        atomic.write_text(draft / "clients.json", json.dumps(content))
        shutil.rmtree(self._folder / name, ignore_errors=True)
        draft.rename(self._folder / name)
        self._make_newest(name)

    def go_back_to(self, save: Save) -> State:
        """Return the weights of a save, and make it the newest."""
        state = save.state()
        self._make_newest(save.path.name)
        return state

    def newest(self) -> Save | None:
        """Return the newest save; None where there is none."""
        latest = self._folder / "latest"
        if not latest.is_file():
            return None
        return self._read(self._folder / latest.read_text().strip())

    def of(self, applied: Mapping[str, int]) -> Save | None:
        """Return the save with exactly these updates; None where there is none."""
        for path in self._paths():
            save = self._read(path)
            if save.applied == dict(applied):
                return save
        return None

    def _paths(self) -> list[Path]:
        found = self._folder.glob("update-*")
        return sorted(path for path in found if path.suffix != ".tmp")

    def _make_newest(self, newest: str) -> None:
        """Name the newest save; delete those that are later, and the oldest ones."""
        atomic.write_text(self._folder / "latest", newest)
        paths = self._paths()
        stay = [path for path in paths if path.name <= newest][-self._keep :]
        for path in paths:
            if path not in stay:
                shutil.rmtree(path, ignore_errors=True)

    def _read(self, path: Path) -> Save:
        try:
            content = json.loads((path / "clients.json").read_text())
            contract, run = str(content["contract"]), str(content["run"])
            applied = {str(k): int(v) for k, v in content["applied"].items()}
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise RunError(
                f"{path} is not a save of a server, or is damaged: {error!r}"
            ) from error
        if contract != self._contract:
            raise ContractError(
                f"{path} is of another run: expected contract {self._contract[:12]}, "
                f"got {contract[:12]}; use the settings of that run, or another folder"
            )
        return Save(path, run, applied)

"""Keeps an owner's copy of the shared side from round to round.

    state/side-00000017.safetensors   the side as round 17 begins

After a round, all owners that took part have the same side. An owner that was away gets
it from the server, sealed by another owner. A restarted server may ask for an earlier
round again; the owner then returns to the side that it had before that round.
"""

from lightsplit.deployment.hand_offs import HandOffs
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.deployment.state_folder import StateFolder
from lightsplit.errors import RunError
from lightsplit.protocol import Contract
from lightsplit.protocol.control import Finished, Grant
from lightsplit.results import tensors
from lightsplit.runtime import Client


class RoundSides:
    """Loads, saves, seals and opens the copies of one owner.

    Args:
        client: the owner of the side, with its initial weights.
        contract: of the run.
        options: of the client; its key and its folder are used here.
    """

    def __init__(
        self, client: Client, contract: Contract, options: JoinOptions
    ) -> None:
        self._client = client
        self._hand_offs = HandOffs(client, contract, options.key)
        folder = options.state_folder
        self._folder = None if folder is None else StateFolder(folder)
        self._first_side = tensors.to_bytes(client.side.state())
        self._ready_for: int | None = None  # the round that the side at hand is for

    def enter(self, grant: Grant, run: str) -> None:
        """Bring the side to its state at the beginning of a round."""
        if grant.side:
            self._hand_offs.open(grant.side, run, grant.turn - 1)
            self._save(grant.turn)
        elif self._ready_for != grant.turn:
            self._load(self._saved(grant.turn) if grant.turn else self._first_side)
        if self._folder is not None:
            self._folder.forget_sides_before(grant.oldest_turn)
        self._client.steps = grant.first_step
        self._ready_for = None

    def leave(self, grant: Grant, run: str) -> bytes:
        """Keep the side after a round; return it sealed if the server asks for it."""
        sealed = self._hand_offs.seal(run, grant.turn) if grant.hand_on else b""
        self._save(grant.turn + 1)
        self._ready_for = grant.turn + 1
        return sealed

    def finish(self, finished: Finished, run: str, _steps: int | None = None) -> None:
        """Bring the side to the end of the run, if this owner missed it."""
        if self._ready_for == finished.turn + 1:
            return
        newest = None if self._folder is None else self._folder.newest_step()
        if finished.side:
            self._hand_offs.open(finished.side, run, finished.turn)
        elif newest is not None:
            self._load(self._saved(newest))

    def take_back(self, _grant: Grant) -> None:
        """Do nothing: the round's mean is right even if the hand-in came too late."""

    def _save(self, number: int) -> None:
        if self._folder is not None:
            blob = tensors.to_bytes(self._client.side.state())
            self._folder.save_side(number, blob)

    def _saved(self, number: int) -> bytes:
        if self._folder is None:
            raise RunError(
                f"the server resumes from round {number}, but the side of that round "
                "was not kept; an owner needs a folder for its state to come back"
            )
        return self._folder.load_side(number)

    def _load(self, blob: bytes) -> None:
        self._client.side.load(tensors.from_bytes(blob))

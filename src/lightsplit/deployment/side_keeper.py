"""Brings a client's side to the start of a turn, and keeps it after the turn.

    shared heads    the side travels sealed; the part that stays is in the folder
    private heads   the side stays in the folder, one file per turn

A server that was restarted may ask for an earlier turn again. The client then returns
to the state before that turn's first step.
"""

from lightsplit.deployment.hand_offs import HandOffs
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.deployment.state_folder import StateFolder
from lightsplit.errors import ConfigError, RunError
from lightsplit.protocol import Contract
from lightsplit.protocol.control import Finished, Grant
from lightsplit.results import tensors
from lightsplit.runtime import Client


class SideKeeper:
    """Loads, saves, seals and opens the sides of one client.

    Args:
        client: whose side it is, with its first weights.
        contract: of the run.
        options: of the client; its key and its folder are used here.
    """

    def __init__(
        self, client: Client, contract: Contract, options: JoinOptions
    ) -> None:
        self._client = client
        self._hand_offs: HandOffs | None = None
        self._folder: StateFolder | None = None
        self._first_side = tensors.to_bytes(client.side.state())
        self._is_between_turns = True
        if contract.side_travels:
            self._hand_offs = HandOffs(client, contract, options.key)
        if options.state_folder is not None:
            self._folder = StateFolder(options.state_folder)
        elif self._keeps_state:
            raise ConfigError(
                "a part of the side stays with the client (hand_off int8, "
                "hand_off_optimizer stays, or release once): a folder is needed"
            )

    def enter(self, grant: Grant, run: str) -> None:
        """Bring the side to where a turn begins."""
        client = self._client
        if not self._is_between_turns or client.steps != grant.first_step:
            self._restore(grant.first_step)
        if self._hand_offs is not None:
            self._receive(self._hand_offs, grant, run)
        if self._folder is not None:
            self._folder.forget_sides_before(grant.oldest_step)
        client.steps = grant.first_step
        self._is_between_turns = False

    def leave(self, grant: Grant, run: str) -> bytes:
        """Keep the side after a turn; return it sealed if it travels, else nothing."""
        sealed = b""
        if grant.steps:  # an evaluation changes nothing
            if self._hand_offs is not None:
                sealed = self._hand_offs.seal(run, grant.turn)
            self._save()
        self._is_between_turns = True
        return sealed

    def finish(self, finished: Finished, run: str, steps: int | None = None) -> None:
        """Bring the side to its state at the end of the run.

        A travelling side comes with ``finished``. Any other side is the client's own: a
        client that was restarted on a finished run finds it in its folder, which may
        also hold sides of another run. ``steps`` are those of this client in this run,
        if it knows them.
        """
        if self._hand_offs is not None:
            self._find_kept(steps)
            self._hand_offs.open(finished.side, run, finished.turn)
        elif not self._is_between_turns or not self._client.steps:
            self._return_to_newest(steps)

    def take_back(self, grant: Grant) -> None:
        """Return to the start of a round that has ended without this client's step."""
        if self._folder is not None:
            self._restore(grant.first_step)
            self._folder.forget_sides_after(grant.first_step)
            self._client.steps = grant.first_step

    @property
    def _keeps_state(self) -> bool:
        return self._hand_offs is not None and self._client.hand_off.keeps_state

    def _receive(self, hand_offs: HandOffs, grant: Grant, run: str) -> None:
        """Load the side that the last turn left, or before an evaluation, its turn.

        An empty side cannot be opened: only turn 0 may come without a side.
        """
        left_by = grant.turn - 1 if grant.steps else grant.turn
        if left_by < 0 or not (grant.turn or grant.side):
            self._load(self._first_side)
        else:
            hand_offs.open(grant.side, run, left_by)

    def _save(self) -> None:
        """Save the private side, or the part that stays of one that travels."""
        client = self._client
        if self._folder is None:
            return
        if self._hand_offs is None:
            self._folder.save_side(client.steps, tensors.to_bytes(client.side.state()))
        elif self._keeps_state:
            self._folder.save_side(client.steps, tensors.to_bytes(client.kept))

    def _restore(self, step: int) -> None:
        """Load the private side, or the part that stayed, as it was before ``step``."""
        if self._hand_offs is None:
            self._load(self._saved(step) if step else self._first_side)
        elif self._keeps_state:
            self._client.kept = tensors.from_bytes(self._saved(step)) if step else {}

    def _find_kept(self, most: int | None) -> None:
        """Load the newest part that stayed here, if this process does not have it."""
        step = None if self._folder is None else self._folder.newest_step(most)
        if self._keeps_state and not self._client.kept and step is not None:
            self._client.kept = tensors.from_bytes(self._saved(step))

    def _return_to_newest(self, most: int | None) -> None:
        """Load the newest side of at most ``most`` steps, or the initial one."""
        if self._folder is None:
            return
        step = self._folder.newest_step(most)
        self._load(self._first_side if step is None else self._saved(step))
        self._client.steps = step or 0

    def _saved(self, step: int) -> bytes:
        if self._folder is None:
            raise RunError(
                f"the server resumes from step {step}, but the side of that step was "
                "not kept; a client needs a folder for its state to come back"
            )
        return self._folder.load_side(step)

    def _load(self, blob: bytes) -> None:
        self._client.side.load(tensors.from_bytes(blob))

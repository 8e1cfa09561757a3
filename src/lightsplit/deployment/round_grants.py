"""The grants that owners get at the beginning of a round."""

from lightsplit.deployment.open_round import OpenRound
from lightsplit.deployment.round_boundary import RoundBoundary
from lightsplit.deployment.saved_run import SavedRun
from lightsplit.protocol import Contract
from lightsplit.protocol.control import Grant
from lightsplit.protocol.phases import TRAIN
from lightsplit.runs.rounds import Round, splitfed_paces
from lightsplit.runs.run_state import RunState
from lightsplit.runtime import Pace

_Facts = tuple[bool, int, dict[int, Pace]]


class RoundGrants:
    """Makes the grants of a run.

    Args:
        contract: of the run.
        state: where the run stands.
        boundary: knows which sides are up to date.
        saved: the checkpoints that the run may return to.

    Attributes:
        every_client_evaluates: whether each owner measures a shared model.
    """

    def __init__(
        self,
        contract: Contract,
        state: RunState,
        boundary: RoundBoundary,
        saved: SavedRun,
    ) -> None:
        self._contract = contract
        self._state = state
        self._boundary = boundary
        self._saved = saved
        self.every_client_evaluates = False
        self._round: Round | None = None
        self._facts: _Facts = (False, 0, {})

    def make(self, opened: OpenRound, client: int, *, has_late: bool) -> Grant:
        """Return the grant of a round to an owner.

        Args:
            opened: the round.
            client: that takes part.
            has_late: whether an owner needs the side that this round leaves behind.
        """
        speaks, is_shared = client == opened.speaker, self._contract.averages_side
        steps = self._state.progress.client_steps[client]
        pace = self.pace(opened.round, client, steps)
        needs_side = self._boundary.needs_side(client)
        return Grant(
            turn=opened.round.number,
            steps=pace.steps,
            first_step=steps,
            done=opened.done_steps(client),
            oldest_step=self._saved.oldest_steps[client],
            oldest_turn=self._saved.oldest_number,
            evaluate=self.evaluates(opened, client),
            hand_on=is_shared and speaks and (has_late or self.is_tested(opened.round)),
            run_step=pace.run_step,
            run_steps=pace.run_steps,
            phase=TRAIN,
            side=self._boundary.sealed_side if needs_side else b"",
        )

    def is_tested(self, round_: Round) -> bool:
        """Return whether an evaluation follows a round."""
        return self._known(round_)[0]

    def evaluates(self, opened: OpenRound, client: int) -> bool:
        """Return whether an owner measures the model at the end of a round."""
        is_for_all = self._contract.averages_side and not self.every_client_evaluates
        is_asked = client == opened.speaker or not is_for_all
        return is_asked and self.is_tested(opened.round)

    def pace(self, round_: Round, client: int | None, first_step: int) -> Pace:
        """Return the position of an owner's steps in the run; None is the joined step.

        Args:
            round_: of the run.
            client: whose steps.
            first_step: of them, in its own count.
        """
        _, run_steps, paces = self._known(round_)
        if client is None or not self._contract.is_splitfed:
            return Pace(first_step, 1, round_.place, run_steps)
        return paces[client]._replace(first_step=first_step)

    def order(self, round_: Round) -> list[int]:
        """Return all owners in the order of a round of SplitFed."""
        return list(self._known(round_)[2])

    def _known(self, round_: Round) -> _Facts:
        """Return whether a round is tested, the run's steps, and each owner's pace.

        Each needs a pass over all owners, so they are worked out once per round.
        """
        if self._round is not round_:
            schedule, every = self._state.schedule, self._state.eval_every
            place = round_.place + round_.steps
            is_tested = schedule.is_evaluated(round_.turn, place, every)
            total, paces = schedule.total_steps, dict[int, Pace]()
            if self._contract.is_splitfed:
                seed = None if self._contract.has_copies else self._contract.seed
                paces = splitfed_paces(round_, total, seed=seed)
            self._round, self._facts = round_, (is_tested, total, paces)
        return self._facts

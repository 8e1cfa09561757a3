"""How gradients become updates: learning rate, clipping and accumulation.

    rate of a step = learning rate · warm-up · schedule

    constant   1
    step       ``decay`` to the power of the drops that are over
    cosine     from 1 down to 0, half a cosine over the steps after the warm-up

Both ends of a run use the same recipe, each for its own modules. The rate depends on
the step's place in the whole run, counted over all clients, so a shared head, a private
head and the server have the same rate in the same step. Both ends know the place from
the turn (``Pace``), and a resumed run finds it again.

Clipping limits the norm of each side's own gradient: neither side knows the other's.
Accumulation takes the mean gradient of several steps of one turn and then updates, at
both ends at the same step; a turn never ends within a group.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from lightsplit.errors import ConfigError
from lightsplit.protocol.phases import TRAIN
from lightsplit.registry import unknown_name
from lightsplit.runtime.side import Side

SCHEDULES: "dict[str, Callable[[Recipe, float], float]]" = {
    "constant": lambda _recipe, _share: 1.0,
    "step": lambda recipe, share: (
        recipe.decay ** sum(share >= drop for drop in recipe.drops)
    ),
    "cosine": lambda _recipe, share: 0.5 * (1 + math.cos(math.pi * share)),
}


class Pace(NamedTuple):
    """Where the steps of a turn lie in the run.

    Attributes:
        first_step: the client's own number of the turn's first step.
        steps: of the turn.
        run_step: steps of all clients before the turn, in its phase of the run.
        run_steps: of all clients in the whole phase.
        phase: of the run (``protocol.phases``); each has a schedule of its own.
        done: steps of the turn that the server has applied already.
    """

    first_step: int
    steps: int
    run_step: int
    run_steps: int
    phase: str = TRAIN
    done: int = 0

    def place(self, step: int) -> int:
        """Return the place in the phase of a client's own step."""
        return self.run_step + step - self.first_step


@dataclass(frozen=True)
class Recipe:
    """Turns gradients into updates.

    Attributes:
        schedule: of the learning rate, one of SCHEDULES.
        warm_up: steps of the run in which the rate rises linearly to its full value.
        decay: factor of each drop of the schedule ``step``.
        drops: where they are, as shares of the run after the warm-up.
        clip: the largest norm of a side's gradient; longer ones are shortened.
        accumulate: steps of a turn whose mean gradient makes one update.
    """

    schedule: str = "constant"
    warm_up: int = 0
    decay: float = 0.1
    drops: tuple[float, ...] = (0.5, 0.75)
    clip: float | None = None
    accumulate: int = 1

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            known = list(SCHEDULES)
            raise ConfigError(unknown_name("schedule", self.schedule, known))
        if self.warm_up < 0 or self.accumulate < 1:
            raise ConfigError(
                "warm_up must be 0 or more and accumulate 1 or more, got "
                f"{self.warm_up} and {self.accumulate}"
            )

    def rate(self, place: int, run_steps: int) -> float:
        """Return the share of the full learning rate at a step of the run."""
        if place < self.warm_up:
            return (place + 1) / self.warm_up
        left = max(run_steps - self.warm_up, 1)
        share = min((place - self.warm_up) / left, 1.0)
        return SCHEDULES[self.schedule](self, share)

    def apply(self, side: Side, pace: Pace | None, step: int) -> None:
        """Use the gradients of ``step``: update the weights, or keep them for later.

        Without a pace the step belongs to no run: it makes an update of its own, at the
        rate of the last one.
        """
        group = 1 if pace is None else self._group(pace, step)
        if not group:
            side.hold_gradients(begins=self._begins_group(pace, step))
            return
        if pace is not None and (self.schedule != "constant" or self.warm_up):
            side.set_rate(self.rate(pace.place(step), pace.run_steps))
        side.update(group=group, clip=self.clip)

    def _group(self, pace: Pace, step: int) -> int:
        """Return the steps of the group that ends with ``step``; 0 if none does."""
        done = step - pace.first_step + 1
        if done % self.accumulate == 0:
            return self.accumulate
        return done % self.accumulate if done >= pace.steps else 0

    def _begins_group(self, pace: Pace | None, step: int) -> bool:
        return pace is None or (step - pace.first_step) % self.accumulate == 0

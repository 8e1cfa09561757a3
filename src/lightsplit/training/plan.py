"""How long a networked run goes on, and what happens on the way."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """How long to train and when to look up.

    Attributes:
        turn_steps, epochs, max_steps: as of Schedule.
        eval_every: rounds between evaluations; 0 is once per epoch.
        patience: evaluations without a new best before stopping; 0 is never.
        checkpoint_every: steps between checkpoints; 0 is at each evaluation.
        step_timeout_seconds: a client that keeps the server waiting for longer loses
            its connection; its open step is undone, and it may come back. So long the
            server also stays at the end for clients that have not heard of it.
    """

    turn_steps: int = 1
    epochs: int = 1
    max_steps: int = 0
    eval_every: int = 0
    patience: int = 0
    checkpoint_every: int = 0
    step_timeout_seconds: float = 60.0

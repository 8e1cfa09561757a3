"""A mod that shows a victim's exchanges to attacks that observe, and scores these.

    client ──► Watcher ──► server
                  │ observe      every exchange, with the server's weights
                  └ Trajectory   every so many steps: the attack's guess of the batch
                                 that it has just seen, scored, as a line of a file

An attack whose budget does not last for all of training learns from the last steps.
These scores are of batches that the victim trains on and show an attack's progress. The
score of an audit is another one: of the targets, when training is over.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from lightsplit.attacks import Exchange, Observes
from lightsplit.audits.attacking import own_draws, title
from lightsplit.audits.victim import Victim, true_labels
from lightsplit.metrics import evaluate
from lightsplit.protocol import CodeGradient, Reply, Request
from lightsplit.results import atomic
from lightsplit.transports import Send

METRICS = ("mse", "psnr", "ssim")
Line = dict[str, Any]


class Trajectory:
    """The progress of attacks, one file audit-NAME.jsonl for each."""

    def __init__(self, victim: Victim, folder: Path, every: int | None) -> None:
        self._victim = victim
        self._folder = folder
        self._every = every
        self.lines: dict[str, list[Line]] = {}

    def look(self, attack: Observes, step: int) -> None:
        """Score the attack's guess of the batch of ``step``, if it is time to."""
        if self._every is None or (step + 1) % self._every:
            return
        batches = self._victim.job.trainer.batches[self._victim.client]
        inputs, _ = batches.batch(step)
        images = self._victim.truth.samples(inputs)
        with own_draws(attack, f"guess {step}"):
            guess = attack.guess()
        line: Line = {"step": step + 1, "images": len(images)}
        if guess.images is not None:
            values = evaluate(guess.images.cpu(), images, metrics=METRICS)
            line |= {name: float(each.mean()) for name, each in values.items()}
        if guess.labels is not None:
            line["label_accuracy"] = _share_of_equal(
                guess.labels.cpu(), true_labels(self._victim, step)
            )
        self.add(title(attack), line)

    def add(self, name: str, *lines: Line) -> None:
        """Add lines of an attack and write its file again."""
        known = self.lines.setdefault(name, [])
        known.extend(lines)
        text = "".join(json.dumps(line) + "\n" for line in known)
        atomic.write_text(self._folder / f"audit-{name}.jsonl", text)


class Watcher:
    """A mod that shows every exchange to attacks that observe."""

    def __init__(
        self,
        victim: Victim,
        learners: Sequence[Observes],
        trajectory: Trajectory,
    ) -> None:
        self._server = victim.job.trainer.server.side
        self._trajectory = trajectory
        total = total_steps(victim)
        self._learners = [(attack, first_step(attack, total)) for attack in learners]

    def __call__(self, request: Request, call_next: Send) -> Reply:
        """Let the request through, then show it with its reply."""
        reply = call_next(request)
        for attack in self._awake(request.step):
            attack.observe(Exchange(request, reply), self._server.modules.state_dict())
            if isinstance(reply, CodeGradient):  # the step is complete
                self._trajectory.look(attack, request.step)
        return reply

    def _awake(self, step: int) -> Iterable[Observes]:
        return [attack for attack, first in self._learners if step >= first]


def total_steps(victim: Victim) -> int:
    """Return the number of the victim's steps, unless patience ends the run early."""
    turns = victim.job.trainer.schedule.turns()
    return sum(turn.steps for turn in turns if turn.client == victim.client)


def first_step(attack: Observes, total: int) -> int:
    """Return the first step from which the attack's budget lasts to the end."""
    return max(0, total - attack.steps.get(attack.budget, total))


def _share_of_equal(guesses: Tensor, labels: Tensor) -> float:
    return float((guesses == labels).double().mean())

"""A mod that shows a victim's exchanges to attacks that learn, and looks at them.

    client ──► Watcher ──► server
                  │ observe      every exchange, with the server's weights
                  └ Trajectory   every so many steps: what the attack makes of the batch
                                 that it has just seen, scored, as a line of a file

An attack whose budget does not last for all of training learns from the last steps.
The batch under a look is one that the victim trains on, so these scores follow a run,
and the score of an audit is another one: of the targets, when training is over.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from lightsplit.attacks import Exchange, OnlineReconstruction
from lightsplit.audits.attacking import title
from lightsplit.audits.victim import Victim
from lightsplit.metrics import evaluate
from lightsplit.protocol import CodeGradient, Reply, Request
from lightsplit.results import atomic
from lightsplit.transports import Send

METRICS = ("mse", "psnr", "ssim")
Line = dict[str, Any]


class Trajectory:
    """How attacks get on, one file audit-NAME.jsonl for each."""

    def __init__(self, victim: Victim, folder: Path, every: int) -> None:
        self._victim = victim
        self._folder = folder
        self._every = every
        self.lines: dict[str, list[Line]] = {}

    def look(self, attack: OnlineReconstruction, step: int) -> None:
        """Score what the attack makes of the batch of ``step``, if it is time to."""
        if not self._every or (step + 1) % self._every:
            return
        batches = self._victim.job.trainer.batches[self._victim.client]
        images, labels = batches.batch(step)
        guess = attack.guess()
        line: Line = {"step": step + 1, "images": len(images)}
        values = evaluate(guess.images.cpu(), images, metrics=METRICS)
        line |= {name: float(each.mean()) for name, each in values.items()}
        if guess.labels is not None:
            line["label_accuracy"] = _share_of_equal(guess.labels.cpu(), labels)
        self.add(title(attack.name, attack.form), line)

    def add(self, name: str, *lines: Line) -> None:
        """Take in lines of an attack and write its file anew."""
        known = self.lines.setdefault(name, [])
        known.extend(lines)
        text = "".join(json.dumps(line) + "\n" for line in known)
        atomic.write_text(self._folder / f"audit-{name}.jsonl", text)


class Watcher:
    """A mod that shows what passes to attacks that learn."""

    def __init__(
        self,
        victim: Victim,
        learners: Sequence[OnlineReconstruction],
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

    def _awake(self, step: int) -> Iterable[OnlineReconstruction]:
        return [attack for attack, first in self._learners if step >= first]


def total_steps(victim: Victim) -> int:
    """Return how many steps the victim takes, unless patience ends the run."""
    turns = victim.job.trainer.schedule.turns()
    return sum(turn.steps for turn in turns if turn.client == victim.client)


def first_step(attack: OnlineReconstruction, total: int) -> int:
    """Return from which step on the attack's budget lasts to the end."""
    return max(0, total - attack.steps.get(attack.budget, total))


def _share_of_equal(guesses: Tensor, labels: Tensor) -> float:
    return float((guesses == labels).double().mean())

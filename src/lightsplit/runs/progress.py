"""The counters of a run: all that a resumed run must know besides the weights."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lightsplit.backdoors import Verdict
from lightsplit.errors import RunError
from lightsplit.runs.evaluation import ACCURACY, Evaluation, Monitor


@dataclass
class Progress:
    """Counters of a run, as plain numbers that go straight into a checkpoint.

    Attributes:
        turns: that have ended.
        steps: of all clients.
        skipped: steps of clients who were absent; the run goes on without them.
        samples: of all steps; a sample counts every time it is used.
        client_steps: of each client.
        last_client: the client of the last turn.
        seconds: of training and evaluation, without interruptions.
        best: value of the monitored figure on the test set so far.
        stale: evaluations since the best one.
        loss_sum, loss_samples: of the training loss since the last evaluation.
        objective_sums, objective_samples: of the clients' objectives since the last
            evaluation.
        history: one line per evaluation, as in metrics.jsonl.
        bytes: by kind.
        verdicts: one per window; "others" has those of detectors that do not act.
        undone_turns: of each client, undone by the guard; empty if none was.
    """

    turns: int = 0
    steps: int = 0
    skipped: int = 0
    samples: int = 0
    client_steps: list[int] = field(default_factory=list)
    last_client: int | None = None
    seconds: float = 0.0
    best: float | None = None
    stale: int = 0
    loss_sum: float = 0.0
    loss_samples: int = 0
    objective_sums: dict[str, float] = field(default_factory=dict)
    objective_samples: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    bytes: dict[str, int] = field(default_factory=dict)
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    undone_turns: list[int] = field(default_factory=list)

    @property
    def place(self) -> int:
        """How far in its schedule the run has come, in steps."""
        return self.steps + self.skipped

    def to_dict(self) -> dict[str, Any]:
        """Return the counters for a JSON file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, counters: object, *, clients: int) -> "Progress":
        """Return the counters that ``to_dict`` wrote for a run of so many clients."""
        from pydantic import TypeAdapter, ValidationError

        try:
            progress = TypeAdapter(cls).validate_python(counters, extra="forbid")
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "counters"
            raise RunError(f"damaged progress: {where}: {first['msg']}") from error
        if len(progress.client_steps) != clients:
            raise RunError(
                f"damaged progress: expected the steps of {clients} clients, "
                f"got {len(progress.client_steps)}"
            )
        return progress

    def note_turn(self, client: int, steps: int, samples: int) -> None:
        """Count a turn with its steps and samples."""
        self.turns += 1
        self.steps += steps
        self.samples += samples
        self.client_steps[client] += steps
        self.last_client = client

    def note_round(
        self, steps_of: Sequence[int], done: Sequence[int], samples: int
    ) -> None:
        """Count a round of so many steps of each client, by those in ``done``."""
        taken = sum(steps_of[client] for client in done)
        self.turns += len(steps_of)
        self.steps += taken
        self.skipped += sum(steps_of) - taken
        self.samples += samples
        for client in done:
            self.client_steps[client] += steps_of[client]

    def note_loss(self, loss_sum: float, samples: int) -> None:
        """Add to the training loss."""
        self.loss_sum += loss_sum
        self.loss_samples += samples

    def note_objectives(self, sums: Mapping[str, float], samples: int) -> None:
        """Add to the clients' objectives."""
        for name, value in sums.items():
            self.objective_sums[name] = self.objective_sums.get(name, 0.0) + value
        self.objective_samples += samples

    def remember(
        self,
        epoch: int,
        round_number: int,
        evaluation: Evaluation,
        monitor: Monitor = ACCURACY,
    ) -> None:
        """Add an evaluation to the history and compare it with the best so far."""
        value = evaluation.figures[monitor.name]
        is_best = monitor.is_better(value, self.best)
        self.stale = 0 if is_best else self.stale + 1
        self.best = value if is_best else self.best
        self.history.append(
            {
                "epoch": epoch,
                "round": round_number,
                "step": self.steps,
                "train_loss": self.loss_sum / max(self.loss_samples, 1),
                **{f"test_{name}": v for name, v in evaluation.figures.items()},
                "client_figures": [dict(figures) for figures in evaluation.clients],
                **_owners(evaluation),
                "bytes": self.bytes["total"],
                "seconds": round(self.seconds, 3),
                **self._objectives(),
            }
        )
        self.loss_sum, self.loss_samples = 0.0, 0
        self.objective_sums, self.objective_samples = {}, 0

    def _objectives(self) -> dict[str, dict[str, float]]:
        """Return the mean of each objective; nothing where there are none."""
        samples = self.objective_samples
        means = {name: value / samples for name, value in self.objective_sums.items()}
        return {"objectives": means} if means else {}

    def note_verdict(
        self, round_number: int, verdict: Verdict, others: Sequence[Verdict] = ()
    ) -> None:
        """Add the verdict after a round, and those of the other detectors."""
        self.verdicts.append(
            {
                "round": round_number,
                "step": self.steps,
                **_plain(verdict),
                "others": list(map(_plain, others)),
            }
        )

    def note_undone(self, client: int) -> None:
        """Count a turn that was undone."""
        if not self.undone_turns:
            self.undone_turns = [0] * len(self.client_steps)
        self.undone_turns[client] += 1


def _owners(evaluation: Evaluation) -> dict[str, Any]:
    """Return who reported and how they weigh; nothing where they have no names."""
    if not evaluation.names:
        return {}
    names = list(evaluation.names)
    return {"client_names": names, "weighted_by": evaluation.weighted_by}


def _plain(verdict: Verdict) -> dict[str, Any]:
    return {
        "detector": verdict.detector,
        "clients": list(verdict.clients),
        "scores": list(verdict.scores),
        "flagged": list(verdict.flagged),
        "threshold": verdict.threshold,
        "false_alarm_rate": verdict.false_alarm_rate,
    }

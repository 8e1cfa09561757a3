"""How far a run has come: all that a resumed run must know besides the weights."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lightsplit.backdoors import Verdict
from lightsplit.errors import RunError
from lightsplit.training.evaluation import Evaluation


@dataclass
class Progress:
    """Counters of a run; plain numbers, so that it is its own checkpoint.

    Attributes:
        turns: that are over.
        steps: of all clients.
        samples: that were trained on, repeats included.
        client_steps: of each client.
        last_client: whose turn was the last one.
        seconds: of training and evaluation, interruptions left out.
        best_accuracy: on the test set so far.
        stale: evaluations since the best one.
        loss_sum, loss_samples: of the training loss since the last evaluation.
        history: one line per evaluation, as in metrics.jsonl.
        bytes: by kind.
        verdicts: one per window, with those of detectors that only watch in "others".
        undone_turns: of each client, by order of the detector; empty if there are none.
    """

    turns: int = 0
    steps: int = 0
    samples: int = 0
    client_steps: list[int] = field(default_factory=list)
    last_client: int | None = None
    seconds: float = 0.0
    best_accuracy: float = 0.0
    stale: int = 0
    loss_sum: float = 0.0
    loss_samples: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    bytes: dict[str, int] = field(default_factory=dict)
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    undone_turns: list[int] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the counters for a JSON file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, counters: object, *, clients: int) -> "Progress":
        """Read what ``to_dict`` returned for a run of so many clients."""
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
        """Count a turn and what it was trained on."""
        self.turns += 1
        self.steps += steps
        self.samples += samples
        self.client_steps[client] += steps
        self.last_client = client

    def note_loss(self, loss_sum: float, samples: int) -> None:
        """Add to the training loss."""
        self.loss_sum += loss_sum
        self.loss_samples += samples

    def remember(self, epoch: int, round_number: int, evaluation: Evaluation) -> None:
        """Add a line to the history and see whether it is the best so far."""
        is_best = evaluation.accuracy > self.best_accuracy
        self.stale = 0 if is_best else self.stale + 1
        self.best_accuracy = max(self.best_accuracy, evaluation.accuracy)
        self.history.append(
            {
                "epoch": epoch,
                "round": round_number,
                "step": self.steps,
                "train_loss": self.loss_sum / max(self.loss_samples, 1),
                "test_accuracy": evaluation.accuracy,
                "test_loss": evaluation.loss,
                "client_accuracies": list(evaluation.accuracies),
                "bytes": self.bytes["total"],
                "seconds": round(self.seconds, 3),
            }
        )
        self.loss_sum, self.loss_samples = 0.0, 0

    def note_verdict(
        self, round_number: int, verdict: Verdict, others: Sequence[Verdict] = ()
    ) -> None:
        """Add a verdict that fell at the end of a round, and what others said then."""
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


def _plain(verdict: Verdict) -> dict[str, Any]:
    return {
        "detector": verdict.detector,
        "clients": list(verdict.clients),
        "scores": list(verdict.scores),
        "flagged": list(verdict.flagged),
        "threshold": verdict.threshold,
        "false_alarm_rate": verdict.false_alarm_rate,
    }

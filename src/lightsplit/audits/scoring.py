"""Figures from the results of attacks.

A Judge has the originals, which no attack ever sees, and remembers the scores of the
trivial attackers: an attack that does not beat them has shown nothing.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from lightsplit.attacks import LabelScore, Reconstructs
from lightsplit.audits.baselines import Baselines
from lightsplit.data import data_folder
from lightsplit.metrics import METRICS, evaluate, summarise, wilson_interval
from lightsplit.metrics.lpips_weights import FEATURES_FILE
from lightsplit.truths import Truth

Figures = dict[str, dict[str, float]]


@dataclass(eq=False)
class Judge:
    """Scores reconstructions against the originals and the trivial attackers.

    Attributes:
        truth: the kind of the samples, which says what is told apart by which metrics.
        originals: the samples that were to be reconstructed.
        labels: of the originals.
        weights: folder of LPIPS's weights; without it LPIPS is left out.
        baselines: the scores of the trivial attackers.
    """

    truth: Truth
    originals: Tensor
    labels: Any
    weights: Path | None = None
    seed: int = 0
    baselines: Baselines = field(init=False)

    def __post_init__(self) -> None:
        self.baselines = Baselines(telling=self.truth.telling)

    def score(self, reconstructions: Tensor) -> Figures:
        """Return every metric's mean, interval and worst."""
        return self.summarise(self.values(reconstructions))

    def score_first(
        self, count: int, reconstructions: Tensor, names: Sequence[str]
    ) -> Figures:
        """Return some metrics of the first ``count`` samples alone."""
        known = [name for name in names if self.weights or name != "lpips"]
        return self.summarise(self.values(reconstructions[:count], known, count=count))

    def values(
        self,
        reconstructions: Tensor,
        names: list[str] | None = None,
        *,
        count: int | None = None,
    ) -> dict[str, Tensor]:
        """Return the metrics of each sample, or of the first ``count`` targets."""
        originals = self.originals[:count]
        return evaluate(
            reconstructions.to(originals),
            originals,
            metrics=names,
            weights=self.weights,
            kind=self.truth.kind,
        )

    def summarise(self, values: Mapping[str, Tensor]) -> Figures:
        """Return the mean, interval and worst of every metric's values."""
        return {
            name: summarise(each, METRICS.create(name), seed=self.seed)._asdict()
            for name, each in values.items()
        }


def label_figures(score: LabelScore) -> dict[str, float]:
    """Return a score, with its 95 % interval if it is a share of samples."""
    if not score.name.endswith("accuracy"):
        return {"mean": score.value}
    low, high = wilson_interval(score.value, score.samples)
    return {"mean": score.value, "low": low, "high": high}


def lpips_weights(data_dir: Path | None) -> Path | None:
    """Return the folder of LPIPS's weights if it has them; nothing is downloaded."""
    folder = data_folder(data_dir) / "weights"
    return folder if (folder / FEATURES_FILE).is_file() else None


def fingerprint(reconstructions: Tensor) -> str:
    """Return the SHA-256 of an attack's images.

    Two audits with the same fingerprint have the same pictures to the last bit. For two
    seeds of R or two victims that means that the attack did not look at the code.
    """
    return hashlib.sha256(reconstructions.cpu().numpy().tobytes()).hexdigest()


def doubts(attack: Reconstructs, reconstructions: Tensor) -> list[str]:
    """Return the reasons not to believe a result."""
    spread = (reconstructions - reconstructions[:1]).abs().max()
    if attack.kind != "trivial" and len(reconstructions) > 1 and spread < 1e-6:
        return ["the same answer for every code: the attack did not look at them"]
    return []

"""How an attack's result becomes figures.

A Judge has the originals, which no attack ever sees, and knows what the trivial
attackers reached: an attack that does not beat them has shown nothing.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

from lightsplit.attacks import LabelledImages, LabelScore, Reconstruction
from lightsplit.data import data_folder
from lightsplit.metrics import METRICS, Scores, evaluate, wilson_interval
from lightsplit.metrics.lpips_weights import FEATURES_FILE

Figures = dict[str, dict[str, float]]
PICTURED = ("mse", "ssim", "psnr", "lpips")  # beside pictures, as in the paper
TELLING = ("ssim", "correlation")  # one of them must beat the trivial attackers


@dataclass(eq=False)
class Judge:
    """Scores reconstructions against the originals and the trivial attackers.

    Attributes:
        originals: the images that were to be reconstructed.
        weights: folder of LPIPS's weights; without it LPIPS is left out.
        trivial: the best that a trivial attacker reached, by metric.
    """

    originals: LabelledImages
    weights: Path | None = None
    seed: int = 0
    trivial: dict[str, float] = field(default_factory=dict)

    def score(self, reconstructions: Tensor) -> Figures:
        """Return every metric's mean, interval and worst."""
        return self._score(reconstructions, self.originals.images)

    def score_first(self, count: int, reconstructions: Tensor) -> Figures:
        """Return the metrics of pictures for the first ``count`` images alone."""
        names = [name for name in PICTURED if self.weights or name != "lpips"]
        originals = self.originals.images
        return self._score(reconstructions[:count], originals[:count], names)

    def _score(
        self, reconstructions: Tensor, originals: Tensor, names: list[str] | None = None
    ) -> Figures:
        scores = Scores()
        scores.add(
            evaluate(
                reconstructions.to(originals),
                originals,
                metrics=names,
                weights=self.weights,
            )
        )
        summaries = scores.summaries(self.seed)
        return {name: summary._asdict() for name, summary in summaries.items()}

    def learn_trivial(self, figures: Figures) -> None:
        """Remember what a trivial attacker reached."""
        for name, summary in figures.items():
            better = max if METRICS.create(name).higher_is_better else min
            known = self.trivial.get(name, summary["mean"])
            self.trivial[name] = better(known, summary["mean"])

    def beats_trivial(self, figures: Figures) -> bool:
        """Say whether a telling metric lies above every trivial attacker's, surely."""
        return any(figures[name]["low"] > self.trivial[name] for name in TELLING)


def label_figures(score: LabelScore) -> dict[str, float]:
    """Return a score; a share of samples also with its 95 % interval."""
    if not score.name.endswith("accuracy"):
        return {"mean": score.value}
    low, high = wilson_interval(score.value, score.samples)
    return {"mean": score.value, "low": low, "high": high}


def lpips_weights(data_dir: Path | None) -> Path | None:
    """Return the folder of LPIPS's weights if they lie there; nothing is fetched."""
    folder = data_folder(data_dir) / "weights"
    return folder if (folder / FEATURES_FILE).is_file() else None


def fingerprint(reconstructions: Tensor) -> str:
    """Return the SHA-256 of what an attack gave back.

    Two audits with the same one have the same pictures to the last bit. For two seeds
    of R or two victims that means that the attack did not look at the code.
    """
    return hashlib.sha256(reconstructions.cpu().numpy().tobytes()).hexdigest()


def doubts(attack: Reconstruction, reconstructions: Tensor) -> list[str]:
    """Return what speaks against believing a result."""
    spread = (reconstructions - reconstructions[:1]).abs().max()
    if attack.kind != "trivial" and len(reconstructions) > 1 and spread < 1e-6:
        return ["the same picture for every code: the attack did not look at them"]
    return []

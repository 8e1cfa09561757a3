"""The victims of the UnSplit grid: one run of ``lightsplit train`` per cell.

A cell is a dataset, a cut and a codec with its settings. Its run lies in a folder named
after it; one that is finished is not trained again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from lightsplit.attacks import readable
from lightsplit.codecs import Codec
from lightsplit.data import SampleSet
from lightsplit.experiments import Job, build, from_settings, run
from lightsplit.results import RunFolder
from lightsplit.simulation import checkpoint


@dataclass(frozen=True)
class Scale:
    """How long the victims train and how long they are attacked."""

    epochs: int
    train_limit: int | None
    iterations: int
    seed: int


@dataclass(frozen=True)
class Cell:
    """One victim."""

    dataset: str
    cut: str
    codec: str
    ratio: float = 1
    wcc: float = 0.0

    @property
    def name(self) -> str:
        """The name of its folder."""
        return (
            f"{self.dataset}-cut{self.cut}-{self.codec}-{self.ratio:g}x-wcc{self.wcc:g}"
        )


@dataclass(frozen=True, eq=False)
class Trained:
    """What a server has of a victim, and what the victim can do."""

    codes: Tensor
    codec: Codec
    accuracy: float


def cells(
    dataset: str, cut: str, ratios: Sequence[float], compactions: Sequence[float]
) -> Iterator[Cell]:
    """Yield raw, then learned-1x1 by ratio, then lightsplit-f by ratio and λ."""
    yield Cell(dataset, cut, "raw")
    for ratio in ratios:
        if ratio <= {"2": 8, "4": 16}[cut]:  # more would leave less than one channel
            yield Cell(dataset, cut, "learned-1x1", ratio)
    for ratio in ratios:
        for wcc in compactions:
            yield Cell(dataset, cut, "lightsplit-f", ratio, wcc)


def trained(cell: Cell, scale: Scale, *, targets: Tensor, out: Path) -> Trained:
    """Return the victim's codes of ``targets``; it is trained if it has not been."""
    experiment = from_settings(
        {
            "model": "mnistnet",
            **asdict(cell),
            "clients": 1,
            "optimizer": "amsgrad",
            "epochs": scale.epochs,
            "train_limit": scale.train_limit,
            "seed": scale.seed,
        }
    )
    folder = RunFolder(out / "victims" / cell.name)
    if not folder.record_file.exists():
        folder.path.mkdir(parents=True, exist_ok=True)
        run(experiment, folder)
    job = build(experiment)
    checkpoint.load(folder.checkpoint, job.trainer, job.contract.digest)
    accuracy = float(folder.read_record()["test_accuracy"])
    return Trained(_codes(job, targets), job.codec, accuracy)


def first_of_each_class(samples: SampleSet) -> Tensor:
    """Return the images that the authors attack: the first of every class, in order."""
    labels = samples.labels.tolist()
    first = [labels.index(n) for n in range(max(labels) + 1)]
    images: Tensor = samples.batch(first)[0]
    return images


@torch.no_grad()
def _codes(job: Job, images: Tensor) -> Tensor:
    side = job.trainer.clients[0].side
    side.set_training(False)
    return readable(job.codec, side.encode(images))

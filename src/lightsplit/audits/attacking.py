"""One attack on one scene: run, scored, pictured, described.

A Scene holds both what attacks are given (the view, and of the knowledge each its part)
and what they never see: the originals and labels that a result is scored by.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from lightsplit.attacks import (
    Attack,
    Knowledge,
    LabelInference,
    LabelScore,
    OnlineReconstruction,
    Progress,
    Reconstruction,
    ServerView,
    equip,
)
from lightsplit.audits import pictures, scoring
from lightsplit.audits.plan import AuditOptions
from lightsplit.audits.record import Entry
from lightsplit.errors import AuditError


class Interrupted(KeyboardInterrupt):
    """Raised by what shows the progress of an audit, to end it there."""


Watch = Callable[[str], Progress]  # a title to what shows the progress under it


@dataclass(frozen=True, eq=False)
class Scene:
    """One run laid open at one moment."""

    options: AuditOptions
    view: ServerView
    knowledge: Knowledge
    judge: scoring.Judge
    labels: Tensor  # of the view's training rows
    images: Path  # folder for pictures


def prepare(
    kind: type[Attack], form: str, knowledge: Knowledge, options: AuditOptions
) -> Attack:
    """Return the attack with what it needs to know, and no more."""
    settings = {"form": form, "budget": options.budget, "seed": options.seed}
    attack = equip(kind, knowledge, **settings)
    if attack is None:
        raise AuditError(
            f"{kind.name} needs to know {', '.join(kind.needs)}; this run cannot "
            "tell all of it"
        )
    return attack


def run_attack(attack: Attack, scene: Scene, watch: Watch) -> Iterator[Entry]:
    """Yield the figures of an attack: one entry, or one per message for labels."""
    progress = watch(title(attack.name, attack.form))
    if isinstance(attack, Reconstruction):
        yield _reconstruct(attack, scene, progress)
    elif isinstance(attack, LabelInference):
        for number, message in enumerate(scene.view.recorded_kinds):
            progress(number, len(scene.view.recorded_kinds))
            yield _infer(attack, scene, message)
        progress(1, 1)


def title(attack: str, form: str) -> str:
    """Return what a row of pictures is called, such as ``unsplit-adaptive``."""
    return f"{attack}-{form}" if form else attack


def _reconstruct(attack: Reconstruction, scene: Scene, progress: Progress) -> Entry:
    began = time.perf_counter()
    images = attack.reconstruct(scene.view, progress)
    seconds = time.perf_counter() - began
    progress(1, 1)
    figures = scene.judge.score(images)
    figures |= _label_figures(attack, scene)
    pictures.write_strip(scene.images, title(attack.name, attack.form), images)
    originals = scene.judge.originals.images
    return {
        **_describe(attack, scene, seconds),
        "images": len(images),
        "metrics": figures,
        **_negative(attack, scene.judge, images),
        "beats_trivial": _verdict(attack, scene.judge, figures),
        "fingerprint": scoring.fingerprint(images),
        "targets": scoring.fingerprint(originals),
        "shown": _show(attack, scene, originals, images),
        "notes": [*attack.notes, *scoring.doubts(attack, images)],
    }


def _show(
    attack: Reconstruction, scene: Scene, originals: Tensor, images: Tensor
) -> Entry:
    """Keep the first images for grids across runs, and say how well these were got."""
    options = scene.options
    name = title(attack.name, attack.form)
    name = f"{name}-{options.budget}-client{options.client}"
    path = pictures.write_shown(scene.images, name, originals, images)
    count = min(pictures.SHOWN, len(images))
    metrics = scene.judge.score_first(count, images)
    return {"file": path.name, "images": count, "metrics": metrics}


def _label_figures(attack: Reconstruction, scene: Scene) -> scoring.Figures:
    """Return the share of labels that the attack got right beside the images."""
    if not isinstance(attack, OnlineReconstruction):
        return {}
    labels = attack.infer_labels(scene.view)
    if labels is None:
        return {}
    right = (labels.cpu() == scene.judge.originals.labels).double()
    chance = 1 / scene.knowledge.classes
    score = LabelScore("label_accuracy", float(right.mean()), chance, len(right))
    return {score.name: scoring.label_figures(score)}


def _negative(
    attack: Reconstruction, judge: scoring.Judge, images: Tensor
) -> dict[str, scoring.Figures]:
    """Return the figures of the negatives where an attack may give these back."""
    if not attack.may_be_negative:
        return {}
    return {"metrics_of_negative": judge.score(1 - images.clamp(0, 1))}


def _verdict(
    attack: Reconstruction, judge: scoring.Judge, figures: scoring.Figures
) -> bool | None:
    if attack.kind == "trivial":
        judge.learn_trivial(figures)
        return None
    return judge.beats_trivial(figures)


def _infer(attack: LabelInference, scene: Scene, message: str) -> Entry:
    began = time.perf_counter()
    score = attack.score(scene.view, message, scene.labels)
    return {
        **_describe(attack, scene, time.perf_counter() - began),
        "message": message,
        "images": score.samples,
        "metrics": {score.name: scoring.label_figures(score)},
        "chance": score.chance,
        "notes": list(attack.notes),
    }


def _describe(attack: Attack, scene: Scene, seconds: float) -> Entry:
    return {
        "attack": attack.name,
        "form": attack.form,
        "kind": attack.kind,
        "threat_model": attack.threat_model,
        "knows": list(attack.needs),
        "budget": scene.options.budget,
        "client": scene.options.client,
        "seed": scene.options.seed,
        "seconds": round(seconds, 3),
    }

"""One attack on one scene: run, scored, pictured, described.

A Scene holds what attacks may see, the view and each its part of the knowledge. It also
holds what no attack sees: the originals and labels that the audit scores results by.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from lightsplit import seeding
from lightsplit.attacks import (
    TARGETS,
    Attack,
    InfersFacts,
    InfersLabels,
    InfersProperty,
    Knowledge,
    Progress,
    Reconstructs,
    ServerView,
    equip,
    fact_score,
)
from lightsplit.audits import scoring
from lightsplit.audits.baselines import Lead, is_ahead
from lightsplit.audits.exhibits import Exhibits
from lightsplit.audits.options import AuditOptions
from lightsplit.audits.plan import Planned
from lightsplit.audits.record import Entry
from lightsplit.errors import AuditError
from lightsplit.part_options import make_arguments, write_part
from lightsplit.results import as_file_name


class Interrupted(KeyboardInterrupt):
    """A progress callback raises this to end an audit there."""


Watch = Callable[[str], Progress]  # returns the progress callback for a title


@dataclass(frozen=True, eq=False)
class Scene:
    """A snapshot of one run, with everything that attacks and scores need.

    Attributes:
        options: of the audit.
        view: the server's messages and weights.
        knowledge: each attack gets the fields that it needs.
        judge: scores samples; it has the originals.
        labels: the true ones of the view's training rows.
        exhibits: shows what attacks found.
        remarks: about the view, for the notes of every entry.
        members: whether each sample of the knowledge's crowd was trained on.
    """

    options: AuditOptions
    view: ServerView
    knowledge: Knowledge
    judge: scoring.Judge
    labels: Any
    exhibits: Exhibits
    remarks: tuple[str, ...] = ()
    members: Tensor = field(default_factory=lambda: torch.empty(0).bool())

    @property
    def known_images(self) -> int:
        """The number of images that an attacker may know."""
        known = self.knowledge.auxiliary
        return 0 if known is None else len(known.images)

    def true_labels(self, source: str) -> Tensor:
        """Return the true labels of a source of label inference."""
        found: Tensor = self.judge.labels if source == TARGETS else self.labels
        return found


def prepare_all(
    planned: Sequence[Planned], knowledge: Knowledge, options: AuditOptions
) -> list[Attack]:
    """Return the attacks, ready; those that lack knowledge only if asked for by name.

    An attack that was asked for and cannot run is refused with the reason.
    """
    return [
        prepare(one, knowledge, options)
        for one in planned
        if options.names(one.attack.name) or not unknown_to(one.attack, knowledge)
    ]


def unknown_to(attack: type[Attack], knowledge: Knowledge) -> list[str]:
    """Return the fields that an attack needs and the run cannot tell."""
    return [name for name in attack.needs if getattr(knowledge, name) is None]


def prepare(planned: Planned, knowledge: Knowledge, options: AuditOptions) -> Attack:
    """Return the attack with its options and the knowledge it needs, and no more."""
    kind = planned.attack
    supplied = kind.given_arguments()
    attack = equip(
        kind,
        knowledge,
        form=planned.form,
        budget=options.budget,
        seed=options.seed,
        **make_arguments(kind, planned.options, given=supplied),
    )
    if attack is None:
        missing = unknown_to(kind, knowledge)
        why = [knowledge.reasons.get(name, "this run cannot tell") for name in missing]
        reasons = "; ".join(dict.fromkeys(why))
        raise AuditError(
            f"{kind.name} needs to know {', '.join(missing)}, but {reasons}"
        )
    attack.options = planned.options
    return attack


def run_attack(attack: Attack, scene: Scene, watch: Watch) -> Iterator[Entry]:
    """Yield an attack's figures: an entry for samples, one per source of others."""
    progress = watch(title(attack))
    if isinstance(attack, Reconstructs):
        yield _reconstruct(attack, scene, progress)
    if isinstance(attack, InfersLabels):
        yield from infer_labels(attack, scene, _own_sources(attack, scene), progress)
    if isinstance(attack, InfersFacts):
        for source in attack.sources(scene.view):
            yield _suspect(attack, scene, source)
        progress(1, 1)


def infer_labels(
    attack: InfersLabels, scene: Scene, sources: Sequence[str], progress: Progress
) -> Iterator[Entry]:
    """Yield an entry for the labels that the attack infers from each source."""
    for number, source in enumerate(sources):
        progress(number, len(sources))
        yield _infer(attack, scene, source)
    progress(1, 1)


def _own_sources(attack: InfersLabels, scene: Scene) -> list[str]:
    """Return the sources that have an entry of their own.

    The labels of the targets have none if the attack returns the targets' images: they
    are among the figures of these.
    """
    return [
        source
        for source in attack.sources(scene.view)
        if source != TARGETS or not isinstance(attack, Reconstructs)
    ]


def title(attack: Attack) -> str:
    """Return the name of an attack's files and rows of pictures.

    Such as ``unsplit-adaptive``, or ``decoder-blocks=4`` with an option.
    """
    options = write_part("", attack.options).removeprefix(":")
    whole = "-".join(filter(None, [attack.name, attack.form, options]))
    return as_file_name(whole)


def own_draws(attack: Attack, what: str) -> AbstractContextManager[None]:
    """Seed what an attack draws in the block, so that no other attack changes it.

    A copy of the client draws as well, where an objective adds noise to its codes.
    """
    return seeding.scope(attack.seed, "attack", title(attack), what)


def _reconstruct(attack: Reconstructs, scene: Scene, progress: Progress) -> Entry:
    began = time.perf_counter()
    with own_draws(attack, "images"):
        images = attack.reconstruct(scene.view, progress)
    seconds = time.perf_counter() - began
    progress(1, 1)  # scoring takes a while too
    values = scene.judge.values(images)
    figures = scene.judge.summarise(values) | _target_labels(attack, scene)
    leads = _leads(attack, scene.judge, values)
    return {
        **_describe(attack, scene, seconds),
        "truth": scene.judge.truth.kind,
        "images": len(images),
        "metrics": figures,
        **_negative(attack, scene.judge, images),
        "converged": attack.converged,
        "beats_trivial": None if leads is None else is_ahead(leads),
        "leads": {name: lead._asdict() for name, lead in (leads or {}).items()},
        "fingerprint": scoring.fingerprint(images),
        "targets": scoring.fingerprint(scene.judge.originals),
        **_show(attack, scene, images),
        "notes": [*scene.remarks, *attack.notes, *scoring.doubts(attack, images)],
    }


def _show(attack: Reconstructs, scene: Scene, samples: Tensor) -> Entry:
    """Show what the attack found, and return what its entry says about it."""
    options = scene.options
    name = f"{title(attack)}-{options.budget}-client{options.client}"
    return scene.exhibits.add(title(attack), name, samples)


def _target_labels(attack: Reconstructs, scene: Scene) -> scoring.Figures:
    """Return the score of the targets' labels where the attack infers them too."""
    if not isinstance(attack, InfersLabels):
        return {}
    if TARGETS not in attack.sources(scene.view):
        return {}
    with own_draws(attack, TARGETS):
        score = attack.score(scene.view, TARGETS, scene.true_labels(TARGETS))
    return {score.name: scoring.label_figures(score)}


def _negative(
    attack: Reconstructs, judge: scoring.Judge, images: Tensor
) -> dict[str, scoring.Figures]:
    """Return the figures of the negatives if the attack may return negatives."""
    if not attack.may_be_negative:
        return {}
    return {"metrics_of_negative": judge.score(1 - images.clamp(0, 1))}


def _leads(
    attack: Reconstructs, judge: scoring.Judge, values: dict[str, Tensor]
) -> dict[str, Lead] | None:
    """Return the leads over baselines; a trivial attack becomes a baseline instead."""
    if attack.kind == "trivial":
        judge.baselines.add(attack.name, attack.needs, values)
        return None
    return judge.baselines.leads(attack.needs, values)


def _infer(attack: InfersLabels, scene: Scene, source: str) -> Entry:
    began = time.perf_counter()
    with own_draws(attack, source):
        score = attack.score(scene.view, source, scene.true_labels(source))
    return {
        **_describe(attack, scene, time.perf_counter() - began),
        "kind": "labels",  # of the entry, whatever else the attack does
        "message": source,
        "images": score.samples,
        "metrics": {score.name: scoring.label_figures(score)},
        "chance": score.chance,
        "notes": [*scene.remarks, *attack.notes],
    }


def _suspect(attack: InfersFacts, scene: Scene, source: str) -> Entry:
    """Return the entry of what an attack believes about samples."""
    began = time.perf_counter()
    with own_draws(attack, source):
        believed = attack.suspect(scene.view, source)
    seconds = time.perf_counter() - began
    truth = _truth(attack, scene)
    if believed.rows is not None:
        truth = truth[believed.rows]
    score = fact_score(
        believed.scores.cpu(), truth, threshold=believed.threshold, seed=attack.seed
    )
    return {
        **_describe(attack, scene, seconds),
        "kind": attack.fact,
        "message": source,
        "images": score.samples,
        "metrics": score.figures,
        "chance": score.figures["auc"]["chance"],
        "notes": [*scene.remarks, *attack.notes],
    }


def _truth(attack: InfersFacts, scene: Scene) -> Tensor:
    if isinstance(attack, InfersProperty):
        return attack.holds(scene.judge.originals).cpu()
    return scene.members


def _describe(attack: Attack, scene: Scene, seconds: float) -> Entry:
    return {
        "attack": attack.name,
        "form": attack.form,
        "options": attack.options,
        "kind": attack.kind,
        "threat_model": attack.threat_model,
        "knows": list(attack.needs),
        "budget": scene.options.budget,
        "client": scene.options.client,
        "seed": scene.options.seed,
        "auxiliary": scene.known_images,
        "asked": scene.options.asked,
        "seconds": round(seconds, 3),
    }

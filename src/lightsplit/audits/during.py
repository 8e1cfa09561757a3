"""Attacks while training goes on.

The run is trained once more from its own settings; being made of seeds alone it comes
out the same, and that is checked. Mods before the server show every exchange of the
victim to the attacks that learn, and keep the latest ones:

    client ──► mods ──► server      at each evaluation: labels are inferred from the
                │                   messages of the last steps
                └─► observe         at the end: reconstruction
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from lightsplit.attacks import (
    Exchange,
    Knowledge,
    LabelInference,
    OnlineReconstruction,
    Progress,
    ServerView,
    silent,
)
from lightsplit.audits import pictures, scoring
from lightsplit.audits.attacking import (
    Interrupted,
    Scene,
    Watch,
    prepare,
    run_attack,
    title,
)
from lightsplit.audits.audit import find_victim, set_scene
from lightsplit.audits.gathering import first_of_each_class, gather
from lightsplit.audits.observation import public_codec
from lightsplit.audits.pausing import Pauses
from lightsplit.audits.plan import (
    TRAINING_SAMPLES,
    AuditOptions,
    Planned,
    expected,
    suited,
)
from lightsplit.audits.record import Entry, keep
from lightsplit.audits.victim import Victim, begin_again
from lightsplit.audits.watching import Trajectory, Watcher
from lightsplit.errors import AuditError, RunError
from lightsplit.experiments import Job
from lightsplit.protocol import CodeMessage
from lightsplit.results import RunFolder, tensors
from lightsplit.transports import Recorder, through

TRAINING = "training"  # the title of the longest part of such an audit


def audit_during(
    folder: RunFolder,
    options: AuditOptions,
    *,
    watch: Watch,
    data_dir: Path | None = None,
) -> list[Entry]:
    """Train the run again under attack; return the figures that were added to it."""
    planned = expected(options, during=True)
    if options.resume and any(issubclass(k, LabelInference) for k, _ in planned):
        raise AuditError(
            "label inference looks at the messages of the last steps, which are not "
            "saved; resume with the attacks that learn only"
        )
    job = begin_again(folder, data_dir, device=options.device)
    planned = suited(planned, options, job)
    victim = find_victim(job, options)
    known = gather(victim, auxiliary=options.auxiliary_count, seed=options.seed)
    learners = _learners(planned, known, options)
    trajectory = Trajectory(victim, folder.path, options.score_every)
    recorder = _attach(victim, Watcher(victim, learners, trajectory))
    pauses = Pauses(folder, job, learners, trajectory, options)
    if options.resume:
        pauses.resume()
    else:
        pauses.forget()
    entries: list[Entry] = []
    for _ in _evaluations(job, watch(TRAINING), pauses):
        scene = _scene_now(victim, recorder, known, options, folder)
        entries += _infer_labels(
            scene, planned, folder, step=job.trainer.progress.steps
        )
    check_undisturbed(folder, job)
    if learners:
        scene = set_scene(victim, options, folder, data_dir)
        entries += _reconstruct(scene, planned, learners, folder, watch)
    pauses.forget()
    return entries


def check_undisturbed(folder: RunFolder, job: Job) -> None:
    """Raise unless the run came out as the one in the folder, bit for bit."""
    for file in sorted(folder.checkpoint.glob("*/server.safetensors")):
        before, now = tensors.load(file), job.trainer.server.side.state()
        if before.keys() != now.keys() or not all(
            torch.equal(before[name], now[name].cpu()) for name in before
        ):
            raise RunError(
                "training once more gave other weights than the run has: it was made "
                "with other software, another device or another number of threads"
            )


def _learners(
    planned: list[Planned], known: Knowledge, options: AuditOptions
) -> list[OnlineReconstruction]:
    return [
        cast(OnlineReconstruction, prepare(kind, form, known, options))
        for kind, form in planned
        if issubclass(kind, OnlineReconstruction)
    ]


def _attach(victim: Victim, watcher: Watcher) -> Recorder:
    """Put the mods between the victim and its server."""
    steps = math.ceil(TRAINING_SAMPLES / victim.job.experiment.batch_size)
    exchanges = 2 if victim.side.has_tail else 1
    recorder = Recorder(limit=steps * exchanges, only_training=True)
    victim.actor.send = through(recorder, through(watcher, victim.actor.send))
    return recorder


def _evaluations(job: Job, progress: Progress, pauses: Pauses) -> Iterator[None]:
    """Train to the end, stopping for a look at every evaluation."""
    trainer = job.trainer
    for done in trainer.run():
        try:
            progress(trainer.progress.steps, trainer.schedule.total_steps)
        except Interrupted:
            pauses.save()
            raise
        if done.evaluation is not None:
            yield
        pauses.save_if_due()


def _scene_now(
    victim: Victim,
    recorder: Recorder,
    known: Knowledge,
    options: AuditOptions,
    folder: RunFolder,
) -> Scene:
    exchanges = tuple(Exchange(*exchange) for exchange in recorder.exchanges)
    labels = _labels(victim, exchanges)
    return Scene(
        options=options,
        view=ServerView(
            contract=victim.job.contract,
            codec=public_codec(victim),
            exchanges=exchanges,
            output_codec=victim.job.output_codec,
            formats=victim.job.trainer.server.formats,
        ),
        knowledge=replace(known, hints=first_of_each_class(labels)),
        judge=scoring.Judge(victim.targets),
        labels=labels,
        images=folder.images,
    )


def _labels(victim: Victim, exchanges: tuple[Exchange, ...]) -> Tensor:
    batches = victim.job.trainer.batches[victim.client]
    return torch.cat(
        [
            batches.batch(request.step)[1]
            for request, _ in exchanges
            if isinstance(request, CodeMessage)
        ]
    )


def _infer_labels(
    scene: Scene, planned: list[Planned], folder: RunFolder, *, step: int
) -> Iterator[Entry]:
    for kind, form in planned:
        if issubclass(kind, LabelInference):
            attack = prepare(kind, form, scene.knowledge, scene.options)
            for entry in run_attack(attack, scene, lambda _: silent):
                yield keep(folder, {**entry, "step": step})


def _reconstruct(
    scene: Scene,
    planned: list[Planned],
    learners: list[OnlineReconstruction],
    folder: RunFolder,
    watch: Watch,
) -> Iterator[Entry]:
    trivial = [
        prepare(kind, form, scene.knowledge, scene.options)
        for kind, form in planned
        if kind.kind == "trivial"
    ]
    for attack in (*trivial, *learners):
        for entry in run_attack(attack, scene, watch):
            yield keep(folder, entry)
    rows = [title(attack.name, attack.form) for attack in (*trivial, *learners)]
    pictures.write_grid(folder.images, rows)

"""Attacks while training goes on.

The audit trains the run once more from its own settings. All its randomness comes from
seeds, so it comes out the same, and the audit checks that. Mods before the server show
every exchange of the victim to the attacks that observe, and keep the latest ones:

    client ──► mods ──► server      at each evaluation: labels are inferred from the
                │                   messages of the last steps
                └─► observe         at the end: images and labels of the targets
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from lightsplit.attacks import (
    Exchange,
    InfersLabels,
    Knowledge,
    Observes,
    Progress,
    ServerView,
    silent,
)
from lightsplit.audits.attacking import (
    Interrupted,
    Scene,
    Watch,
    infer_labels,
    prepare,
    run_attack,
    title,
)
from lightsplit.audits.audit import find_victim, make_judge, set_scene
from lightsplit.audits.exhibits import make_exhibits
from lightsplit.audits.gathering import gather, give_hints
from lightsplit.audits.linking import link
from lightsplit.audits.observation import joined, public_wire
from lightsplit.audits.options import AuditOptions
from lightsplit.audits.owner import is_joined
from lightsplit.audits.pausing import Pauses
from lightsplit.audits.plan import (
    TRAINING_SAMPLES,
    Planned,
    expected,
    looks_at_messages,
    suited,
)
from lightsplit.audits.record import Entry, keep
from lightsplit.audits.victim import Victim, begin_again, true_labels
from lightsplit.audits.watching import Trajectory, Watcher
from lightsplit.errors import AuditError, RunError
from lightsplit.experiments import Job
from lightsplit.protocol import CodeMessage
from lightsplit.results import RunFolder, tensors
from lightsplit.runs import checkpoint_folder
from lightsplit.transports import Recorder, through

TRAINING = "training"  # the title of the longest part of such an audit


def audit_during(
    folder: RunFolder,
    options: AuditOptions,
    *,
    watch: Watch,
    data_dir: Path | None = None,
) -> list[Entry]:
    """Train the run again under attack; return the entries added to its record."""
    if is_joined(folder):
        raise RunError(
            f"{folder.path} is an owner's part of a networked run; to train that again "
            "takes the server and the other owners: leave out --during"
        )
    planned = expected(options, during=True)
    if options.resume and any(looks_at_messages(one.attack) for one in planned):
        raise AuditError(
            "label inference looks at the messages of the last steps, which are not "
            "saved; resume with the attacks that learn only"
        )
    if folder.read_record()["experiment"]["split"].get("release") == "once":
        raise AuditError(
            "each code of this run was sent once, so there are no codes in its steps "
            "to watch; audit it without --during"
        )
    job = begin_again(folder, data_dir, device=options.device, task=options.task)
    planned = suited(planned, options, job.experiment.make_task(), job.contract)
    victim = find_victim(job, options)
    known = gather(victim, auxiliary=options.auxiliary_count, seed=options.seed)
    known = replace(known, linked=link(victim))
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
        entries += _attack_at_the_end(scene, planned, learners, folder, watch)
    pauses.forget()
    return entries


def check_undisturbed(folder: RunFolder, job: Job) -> None:
    """Raise RunError unless the run came out as in the folder, bit for bit."""
    newest, _ = checkpoint_folder.read(folder.checkpoint, job.contract.digest)
    before = tensors.load(newest / "server.safetensors")
    now = job.trainer.server.side.state()
    if before.keys() != now.keys() or not all(
        torch.equal(before[name], now[name].cpu()) for name in before
    ):
        raise RunError(
            "training once more gave other weights than the run has: the run was "
            "made with other software, another device or another number of threads"
        )


def _learners(
    planned: list[Planned], known: Knowledge, options: AuditOptions
) -> list[Observes]:
    return [
        cast(Observes, prepare(one, known, options))
        for one in planned
        if issubclass(one.attack, Observes)
    ]


def _attach(victim: Victim, watcher: Watcher) -> Recorder:
    """Put the mods between the victim and its server."""
    steps = math.ceil(TRAINING_SAMPLES / victim.job.experiment.training.batch_size)
    exchanges = 2 if victim.side.has_tail else 1
    recorder = Recorder(limit=steps * exchanges, only_training=True)
    victim.actor.send = through(recorder, through(watcher, victim.actor.send))
    return recorder


def _evaluations(job: Job, progress: Progress, pauses: Pauses) -> Iterator[None]:
    """Train to the end, and yield at every evaluation."""
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
    labels, judge = _labels(victim, exchanges), make_judge(victim)
    return Scene(
        options=options,
        view=ServerView(
            contract=victim.job.contract,
            wire=public_wire(victim),
            exchanges=exchanges,
        ),
        knowledge=give_hints(known, labels, seed=options.seed),
        judge=judge,
        labels=labels,
        exhibits=make_exhibits(folder.images, judge),
    )


def _labels(victim: Victim, exchanges: tuple[Exchange, ...]) -> Any:
    return joined(
        [
            true_labels(victim, request.step)
            for request, _ in exchanges
            if isinstance(request, CodeMessage)
        ]
    )


def _infer_labels(
    scene: Scene, planned: list[Planned], folder: RunFolder, *, step: int
) -> Iterator[Entry]:
    """Yield the labels inferred from the messages of the last steps."""
    for one in planned:
        if looks_at_messages(one.attack):
            ready = prepare(one, scene.knowledge, scene.options)
            attack, messages = cast(InfersLabels, ready), scene.view.recorded_kinds
            sources = [s for s in attack.sources(scene.view) if s in messages]
            for entry in infer_labels(attack, scene, sources, silent):
                yield keep(folder, {**entry, "step": step})


def _attack_at_the_end(
    scene: Scene,
    planned: list[Planned],
    learners: list[Observes],
    folder: RunFolder,
    watch: Watch,
) -> Iterator[Entry]:
    trivial = [
        prepare(one, scene.knowledge, scene.options)
        for one in planned
        if one.attack.kind == "trivial"
    ]
    scene.exhibits.begin()
    for attack in (*trivial, *learners):
        for entry in run_attack(attack, scene, watch):
            yield keep(folder, entry)
    rows = [title(attack) for attack in (*trivial, *learners)]
    scene.exhibits.finish(rows)

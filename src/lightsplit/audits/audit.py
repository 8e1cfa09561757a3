"""An audit: every attack on one finished run, scored, recorded and shown.

    run folder ─► victim ─► knowledge, view ─► attacks ─► scores ─► record.json, images/

An attack's figures are written as soon as it is done, so that nothing is lost if a
later attack fails or is interrupted.
"""

from dataclasses import replace
from pathlib import Path

from lightsplit.attacks import Attack
from lightsplit.audits import scoring
from lightsplit.audits.attacking import Scene, Watch, prepare_all, run_attack, title
from lightsplit.audits.exhibits import make_exhibits
from lightsplit.audits.gathering import gather, give_hints, let_oracles_know
from lightsplit.audits.head_gradients import let_accomplices_know
from lightsplit.audits.joined import set_joined_scene
from lightsplit.audits.observation import observe
from lightsplit.audits.options import AuditOptions
from lightsplit.audits.owner import is_joined, open_owner
from lightsplit.audits.plan import TRAINING_SAMPLES, expected, suited
from lightsplit.audits.record import Entry, keep
from lightsplit.audits.victim import Victim, choose_victim, restore
from lightsplit.experiments import Job
from lightsplit.results import RunFolder


def audit(
    folder: RunFolder,
    options: AuditOptions,
    *,
    watch: Watch,
    data_dir: Path | None = None,
) -> list[Entry]:
    """Attack the run in ``folder`` and return the entries added to its record."""
    prepare = _of_an_owner if is_joined(folder) else _of_a_run
    scene, ready = prepare(folder, options, data_dir)
    scene.exhibits.begin()
    entries = []
    for attack in ready:
        entries += [keep(folder, entry) for entry in run_attack(attack, scene, watch)]
    scene.exhibits.finish([title(attack) for attack in ready])
    return entries


def find_victim(job: Job, options: AuditOptions) -> Victim:
    """Return the client that ``options`` name, with its targets."""
    return choose_victim(
        job,
        client=options.client,
        images=options.target_count,
        seed=options.seed,
        others_from=options.auxiliary_from,
    )


def set_scene(
    victim: Victim,
    options: AuditOptions,
    folder: RunFolder,
    data_dir: Path | None = None,
) -> Scene:
    """Let the server watch the victim, which trains on, and lay everything open."""
    known = gather(victim, auxiliary=options.auxiliary_count, seed=options.seed)
    known = let_oracles_know(known, victim)  # before it trains on
    known = let_accomplices_know(known, victim)
    seen = observe(
        victim,
        training_samples=TRAINING_SAMPLES,
        seed=options.seed,
        crowd_samples=options.target_count,
    )
    known = replace(known, crowd=seen.crowd)
    judge = make_judge(victim, scoring.lpips_weights(data_dir))
    return Scene(
        options=options,
        view=seen.view,
        knowledge=give_hints(known, seen.labels, seed=options.seed),
        judge=judge,
        labels=seen.labels,
        exhibits=make_exhibits(folder.images, judge),
        members=seen.members,
    )


def make_judge(victim: Victim, weights: Path | None = None) -> scoring.Judge:
    """Return what scores guesses of the victim's samples."""
    targets = victim.targets
    return scoring.Judge(victim.truth, targets.images, targets.labels, weights)


def _of_a_run(
    folder: RunFolder, options: AuditOptions, data_dir: Path | None
) -> tuple[Scene, list[Attack]]:
    """Return a run of one process, laid open, and the attacks on it."""
    job = restore(folder, data_dir, device=options.device, task=options.task)
    planned = suited(
        expected(options, during=False),
        options,
        job.experiment.make_task(),
        job.contract,
    )
    victim = find_victim(job, options)
    scene = set_scene(victim, options, folder, data_dir)
    return scene, prepare_all(planned, scene.knowledge, options)


def _of_an_owner(
    folder: RunFolder, options: AuditOptions, data_dir: Path | None
) -> tuple[Scene, list[Attack]]:
    """Return what an owner recorded of a networked run, and the attacks on it."""
    owner = open_owner(folder, options, data_dir)
    task = owner.experiment.make_task()
    planned = suited(expected(options, during=False), options, task, owner.contract)
    scene = set_joined_scene(owner, options, folder, data_dir)
    ready = prepare_all(planned, scene.knowledge, options)
    owner.begin_record(folder)
    return scene, ready

"""An audit: every attack on one finished run, scored, recorded and pictured.

    run folder ─► victim ─► knowledge, view ─► attacks ─► scores ─► record.json, images/

An attack's figures are written as soon as it is done, so that nothing is lost if a
later attack fails or is interrupted.
"""

from pathlib import Path

from lightsplit.audits import pictures, scoring
from lightsplit.audits.attacking import Scene, Watch, prepare, run_attack, title
from lightsplit.audits.gathering import gather, hinted, let_oracles_know
from lightsplit.audits.observation import observe
from lightsplit.audits.options import AuditOptions
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
    job = restore(folder, data_dir, device=options.device, task=options.task)
    attacks = suited(expected(options, during=False), options, job)
    victim = find_victim(job, options)
    scene = set_scene(victim, options, folder, data_dir)
    ready = [prepare(one, scene.knowledge, options) for one in attacks]
    entries = []
    for attack in ready:
        entries += [keep(folder, entry) for entry in run_attack(attack, scene, watch)]
    pictures.write_grid(folder.images, [title(attack) for attack in ready])
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
    seen = observe(victim, training_samples=TRAINING_SAMPLES, seed=options.seed)
    pictures.write_strip(folder.images, pictures.ORIGINALS, victim.targets.images)
    return Scene(
        options=options,
        view=seen.view,
        knowledge=hinted(known, seen.labels, seed=options.seed),
        judge=scoring.Judge(victim.targets, scoring.lpips_weights(data_dir)),
        labels=seen.labels,
        images=folder.images,
    )

"""An experiment from start to end, in a folder of its own."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from lightsplit.codecs.output import widened_tail
from lightsplit.errors import ConfigError
from lightsplit.experiments.build import Job, build
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.live_metrics import LiveMetrics
from lightsplit.experiments.record import make_record
from lightsplit.experiments.twin import base_rate
from lightsplit.results import RunFolder, finite, tensors
from lightsplit.runs import checkpoint_folder
from lightsplit.runs.callbacks import Callback, Callbacks, RunStart
from lightsplit.runs.rounds import Attendance, read_participation
from lightsplit.simulation import TurnEnded, checkpoint
from lightsplit.splitting import SplitModel, merge

Observer = Callable[[Job, TurnEnded], bool]


def run(  # noqa: PLR0913
    experiment: Experiment,
    folder: RunFolder,
    *,
    data_dir: Path | None = None,
    checkpoint_every: int = 0,
    observe: Observer = lambda _job, _done: True,
    started: Callable[[Job], None] = lambda _job: None,
    callbacks: Sequence[Callback] = (),
    participation: Path | None = None,
    workers: int | None = None,
) -> dict[str, Any] | None:
    """Train, write all results to ``folder`` and return the record.

    If the folder has a checkpoint, the run resumes from it. ``started`` receives the
    job before its first turn, and ``observe`` receives every turn; if ``observe``
    returns false, the run is saved unfinished and there is no record.

    Checkpoints are ``checkpoint_every`` steps apart (0: at each evaluation), and there
    is always one at the end. ``callbacks`` get every line of metrics.jsonl.
    ``participation`` says who takes part in each round. ``workers`` is the number of
    processes that compute the owners of parallel rounds; None: this one does it.
    """
    if experiment.server.encrypted:
        raise ConfigError(
            "training is not encrypted: a step needs gradients, which need products of "
            "encrypted numbers; --encrypted is for serve, join and predict"
        )
    attendance = _attendance(experiment, participation)
    job = build(experiment, data_dir, attendance, workers)
    if checkpoint_folder.exists(folder.checkpoint):
        _check_can_go_on(experiment)
        checkpoint.load(folder.checkpoint, job.trainer, job.contract.digest)
    job.trainer.schedule.check_reaches(job.trainer.progress.place)
    folder.write_experiment(experiment.to_toml())
    with Callbacks(callbacks) as told:
        settings = experiment.settings()
        told.start(RunStart("train", folder.path.name, folder.path, settings))
        metrics = LiveMetrics(folder, told)
        metrics.update(job.trainer.progress.history)
        started(job)
        for done in job.trainer.run():
            metrics.update(job.trainer.progress.history)
            goes_on = observe(job, done)
            if not goes_on or _is_due(done, job, checkpoint_every):
                checkpoint.save(folder.checkpoint, job.trainer, job.contract.digest)
            if not goes_on and not job.trainer.is_done:
                return None
        told.is_finished = True
    checkpoint.save(folder.checkpoint, job.trainer, job.contract.digest)
    _save_models(job, folder.path)
    record: dict[str, Any] = finite({**make_record(job), **_audit_of(folder, job)})
    if experiment.backdoor is not None and experiment.backdoor.twin:
        record["backdoor"]["base_rate"] = base_rate(experiment, data_dir)
    folder.write_verdicts(job.trainer.progress.verdicts)
    folder.write_record(record)
    return record


def _attendance(experiment: Experiment, file: Path | None) -> list[Attendance]:
    """Return who takes part in each round; an empty list means everybody."""
    if file is None:
        return []
    if not experiment.has_rounds:
        raise ConfigError(
            "a participation file has the owners of each round: give the --rounds of "
            "its run too, parallel or splitfed"
        )
    return read_participation(file, experiment.owners.clients)


def _audit_of(folder: RunFolder, job: Job) -> dict[str, Any]:
    """Return the earlier findings of attacks, if the run has not changed since."""
    before = folder.read_record() if folder.is_finished else {}
    if before.get("steps") != job.trainer.progress.steps:
        return {}
    return {name: before[name] for name in ("audit", "leakage") if name in before}


def _check_can_go_on(experiment: Experiment) -> None:
    if experiment.server.hijack:
        raise ConfigError("a hijacked run cannot be resumed: start it anew")


def _is_due(done: TurnEnded, job: Job, every: int) -> bool:
    steps = job.trainer.progress.steps
    is_evaluated = done.evaluation is not None or done.turn.ends_early_epoch
    return checkpoint_folder.is_due(
        every, steps, done.report.steps, is_evaluated=is_evaluated
    )


def _save_models(job: Job, path: Path) -> None:
    """Write the whole model under its own names, one per private head."""
    clients = job.trainer.clients
    if job.trainer.has_shared_heads:
        parts = _whole_parts(job, job.parts.head, job.parts.tail)
        tensors.save(path / "model.safetensors", merge(parts).state_dict())
        return
    for index, client in enumerate(clients):
        modules = client.side.modules
        job.trainer.server.side.normalisation.switch_to(index)
        tail = modules["tail"] if client.side.has_tail else job.parts.tail
        parts = _whole_parts(job, modules["head"], tail)
        name = f"model-{index}.safetensors"
        tensors.save(path / name, merge(parts).state_dict())


def _whole_parts(job: Job, head: nn.Module, tail: nn.Module | None) -> SplitModel:
    """Return the parts with the model's own tail, which takes whole outputs.

    Where nothing is sent, the tail is a layer beside the model, under names of its own.
    """
    if not job.codec.is_sent:
        tail = None
    if job.output_codec is not None and tail is not None:
        tail = widened_tail(tail, job.output_codec)
    return SplitModel(head, job.parts.backbone, tail, job.parts.whole)

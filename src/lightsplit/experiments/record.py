"""The final figures of a run, as they stand in record.json (docs/record.md)."""

import os
import platform
from importlib.metadata import version
from typing import Any

import torch
from torch import nn

from lightsplit.codecs import Codec, OutputCodec
from lightsplit.experiments.backdoors import measure_backdoor
from lightsplit.experiments.build import Job
from lightsplit.experiments.certificate import code_bits, measured, promised
from lightsplit.experiments.computation import client_cost
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.detection import detection_record
from lightsplit.experiments.inspection import SHOWN, hijack_record, inspection_record
from lightsplit.experiments.labels import labels
from lightsplit.experiments.raw_traffic import step_ratio, total_ratio
from lightsplit.protocol import Contract, Wire
from lightsplit.results import RECORD_VERSION
from lightsplit.runs.run_state import RunState
from lightsplit.splitting import SplitModel


def make_record(job: Job) -> dict[str, Any]:
    """Return the record of a finished job."""
    trainer, progress = job.trainer, job.trainer.progress
    last = progress.history[-1]
    described = describe_run(job.experiment, job.contract, trainer.server.wire)
    certificate = measured(trainer.clients[0], job.dataset.test)
    return {
        **described,
        "certificate": described["certificate"] | certificate,
        **test_figures(trainer.state),
        "stopped_by": trainer.state.stop_reason or "schedule",
        "steps": progress.steps,
        "samples": progress.samples,
        "epochs": last["epoch"],
        "rounds": last["round"],
        "seconds": round(progress.seconds, 3),
        "step_ratio": step_ratio(progress, job.contract),
        "total_ratio": total_ratio(job.experiment, progress, job.contract),
        "bytes": progress.bytes,
        "parameters": count_parameters(job.parts, job.codec, job.output_codec),
        "client_cost": _client_cost(job),
        "label_histogram": None if job.histogram is None else job.histogram.tolist(),
        "backdoor": measure_backdoor(job.experiment, job.witnesses(), job.test),
        "detection": detection_record(job.experiment, progress),
        "inspection": inspection_record(trainer.clients),
        "hijack": hijack_record(job.hijacker, trainer.clients[0], _private(job)),
    }


def test_figures(state: RunState) -> dict[str, Any]:
    """Return the figures of the last evaluation, and the best monitored figure."""
    monitor, progress = state.monitor, state.progress
    last = progress.history[-1] if progress.history else {}
    tested = {key: last[key] for key in last if key.startswith("test_")}
    value = last.get(f"test_{monitor.name}")
    return {
        "monitor": {**monitor._asdict(), "last": value, "best": progress.best},
        **tested,
        f"best_test_{monitor.name}": progress.best,
        "client_figures": last.get("client_figures", []),
        **{key: last[key] for key in ("client_names", "weighted_by") if key in last},
    }


def describe_run(
    experiment: Experiment, contract: Contract, wire: Wire
) -> dict[str, Any]:
    """Return the settings, versions and hardware of a run."""
    codec, task = wire.codec, experiment.make_task()
    return {
        "record_version": RECORD_VERSION,
        "experiment": experiment.tables(),
        "labels": labels(experiment),
        "seed": experiment.seed,
        "activation_size": codec.activation_size,
        "code_size": codec.code_size if codec.is_sent else 0,
        "ratio": codec.ratio if codec.is_sent else None,
        "code_bits": code_bits(wire),
        "certificate": promised(experiment, wire),
        "output_size": contract.output_size,
        "cut": {"head_until": task.head_until, "tail_from": task.tail_from},
        "contract": contract.digest,
        "versions": {
            "lightsplit": version("lightsplit"),
            "torch": torch.__version__,
            "numpy": version("numpy"),
            "python": platform.python_version(),
        },
        "hardware": {
            "machine": platform.machine(),
            "cpus": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "device": experiment.training.device,
        },
    }


def _client_cost(job: Job) -> dict[str, int] | None:
    task, server = job.experiment.make_task(), job.trainer.server
    if task.share:
        return None
    client = job.trainer.clients[0].side
    return client_cost(client, server.side, task.example_inputs())


def _private(job: Job) -> torch.Tensor:
    """Return the first few training images of the first client."""
    images: torch.Tensor = job.dataset.train.batch(job.held[0][:SHOWN])[0]
    return images


def count_parameters(
    parts: SplitModel, codec: Codec, output_codec: OutputCodec | None
) -> dict[str, int]:
    """Return the number of parameters of each part of the model and of its codecs."""
    return {
        "head": _count(parts.head),
        "backbone": _count(parts.backbone),
        "tail": _count(parts.tail),
        "encoder": _count(codec.encoder),
        "decoder": _count(codec.decoder),
        "output_encoder": _count(output_codec.encoder if output_codec else None),
    }


def _count(module: nn.Module | None) -> int:
    return 0 if module is None else sum(p.numel() for p in module.parameters())

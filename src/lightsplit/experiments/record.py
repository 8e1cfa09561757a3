"""The final figures of a run, as they stand in record.json (docs/record.md)."""

import os
import platform
from importlib.metadata import version
from typing import Any

import torch
from torch import nn

from lightsplit.experiments.build import Job
from lightsplit.protocol import STEP_KINDS
from lightsplit.protocol.messages import LOSS_BYTES
from lightsplit.runtime import Side

RECORD_VERSION = 1


def make_record(job: Job) -> dict[str, Any]:
    """Return the figures of a job that has run."""
    trainer, codec = job.trainer, job.codec
    progress = trainer.progress
    last = progress.history[-1]
    return {
        "record_version": RECORD_VERSION,
        "experiment": job.experiment.model_dump(),
        "seed": job.experiment.seed,
        "test_accuracy": last["test_accuracy"],
        "best_test_accuracy": progress.best_accuracy,
        "test_loss": last["test_loss"],
        "client_accuracies": last["client_accuracies"],
        "stopped_by": "patience" if trainer.is_out_of_patience else "schedule",
        "steps": progress.steps,
        "samples": progress.samples,
        "epochs": last["epoch"],
        "rounds": last["round"],
        "seconds": round(progress.seconds, 3),
        "activation_size": codec.activation_size,
        "code_size": codec.code_size,
        "ratio": codec.ratio,
        "step_ratio": step_ratio(job),
        "bytes": progress.bytes,
        "parameters": _parameters(job),
        "label_histogram": job.histogram.tolist(),
        "contract": job.contract.digest,
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
            "device": job.experiment.device,
        },
    }


def step_ratio(job: Job) -> float:
    """Return the bytes of all messages of all steps, raw in fp32 over ours."""
    progress = job.trainer.progress
    ours = sum(progress.bytes[kind] for kind in (*STEP_KINDS, "labels"))
    return raw_step_bytes(job) / ours


def raw_step_bytes(job: Job) -> int:
    """Return what the same steps would have sent with the raw codec in fp32."""
    progress = job.trainer.progress
    activations = 2 * 4 * progress.samples * job.codec.activation_size
    if job.experiment.topology == "vanilla":
        losses = LOSS_BYTES * progress.steps
        labels = progress.samples * torch.int64.itemsize
        return activations + labels + losses
    outputs = torch.Size(job.contract.output_shape).numel()
    return activations + 2 * 4 * progress.samples * outputs


def _parameters(job: Job) -> dict[str, int]:
    client, server = job.trainer.clients[0].side, job.trainer.server.side
    return {
        "head": _count(client, "head"),
        "backbone": _count(server, "backbone"),
        "tail": _count(client, "tail") + _count(server, "tail"),
        "encoder": _count(client, "encoder"),
        "decoder": _count(server, "decoder"),
    }


def _count(side: Side, name: str) -> int:
    module: nn.Module | None = dict(side.modules.items()).get(name)
    return sum(p.numel() for p in module.parameters()) if module is not None else 0

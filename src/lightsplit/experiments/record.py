"""The final figures of a run, as they stand in record.json (docs/record.md)."""

import math
import os
import platform
from importlib.metadata import version
from typing import Any

import torch
from torch import nn

from lightsplit.codecs import Codec, OutputCodec
from lightsplit.experiments.backdoors import measure_backdoor
from lightsplit.experiments.build import Job
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.detection import detection_record
from lightsplit.experiments.inspection import SHOWN, hijack_record, inspection_record
from lightsplit.protocol import STEP_KINDS, Contract
from lightsplit.protocol.messages import LOSS_BYTES
from lightsplit.results import RECORD_VERSION
from lightsplit.runtime import Server
from lightsplit.splitting import SplitModel
from lightsplit.training import Progress, Trainer


def make_record(job: Job) -> dict[str, Any]:
    """Return the figures of a job that has run."""
    trainer, progress = job.trainer, job.trainer.progress
    last = progress.history[-1]
    return {
        **describe_run(job.experiment, job.contract, trainer.server),
        "test_accuracy": last["test_accuracy"],
        "best_test_accuracy": progress.best_accuracy,
        "test_loss": last["test_loss"],
        "client_accuracies": last["client_accuracies"],
        "stopped_by": _end(trainer),
        "steps": progress.steps,
        "samples": progress.samples,
        "epochs": last["epoch"],
        "rounds": last["round"],
        "seconds": round(progress.seconds, 3),
        "step_ratio": step_ratio(progress, job.contract),
        "bytes": progress.bytes,
        "parameters": count_parameters(job.parts, job.codec, job.output_codec),
        "label_histogram": job.histogram.tolist(),
        "backdoor": measure_backdoor(job.experiment, job.witnesses(), job.test),
        "detection": detection_record(job.experiment, progress),
        "inspection": inspection_record(trainer.clients),
        "hijack": hijack_record(job.hijacker, trainer.clients[0], _private(job)),
    }


def describe_run(
    experiment: Experiment, contract: Contract, server: Server
) -> dict[str, Any]:
    """Return what was run, with what, and on what."""
    codec = server.side.codec
    return {
        "record_version": RECORD_VERSION,
        "experiment": experiment.model_dump(),
        "seed": experiment.seed,
        "activation_size": codec.activation_size,
        "code_size": codec.code_size,
        "ratio": codec.ratio,
        "code_bits": 8 * server.formats.layout("code", codec.layout(1)).code_bytes,
        "output_size": contract.output_size,
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
            "device": experiment.device,
        },
    }


def step_ratio(progress: Progress, contract: Contract) -> float:
    """Return the bytes of all messages of all steps, raw in fp32 over ours."""
    ours = sum(progress.bytes[kind] for kind in (*STEP_KINDS, "labels"))
    return raw_step_bytes(progress, contract) / ours


def raw_step_bytes(progress: Progress, contract: Contract) -> int:
    """Return what the same steps would have sent with the raw codec in fp32."""
    activations = 2 * 4 * progress.samples * math.prod(contract.activation_shape)
    if contract.topology == "vanilla":
        losses = LOSS_BYTES * progress.steps
        labels = progress.samples * torch.int64.itemsize
        return activations + labels + losses
    return activations + 2 * 4 * progress.samples * math.prod(contract.output_shape)


def _private(job: Job) -> torch.Tensor:
    """Return the first few training images of the first client."""
    return job.dataset.train.batch(job.held[0][:SHOWN])[0]


def _end(trainer: Trainer) -> str:
    if trainer.is_stopped_by_guard:
        return "detector"
    return "patience" if trainer.is_out_of_patience else "schedule"


def count_parameters(
    parts: SplitModel, codec: Codec, output_codec: OutputCodec | None
) -> dict[str, int]:
    """Return the parameters of each part of the model and of its codecs."""
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

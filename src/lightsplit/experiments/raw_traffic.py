"""The bytes that a run would take with raw activations, to compare its own with.

    ratio         d / k                                       at the front cut
    step ratio    raw bytes of all messages of all steps      over ours
    total ratio   raw bytes of everything that crosses        over ours

Raw means: the same steps, evaluations and hand-offs with the raw codec, whole outputs,
fp32, and heads that travel whole with their optimizer's state (``--codec raw --wire
paper``). Framing and set-up count as they are, and so does evaluation where codes are
sent once: raw codes would make it longer.
"""

import math
from collections.abc import Mapping

import torch

from lightsplit.experiments.config import Experiment, make_experiment
from lightsplit.experiments.cuts import make_formats, plan_cuts
from lightsplit.experiments.planned_parts import (
    hand_off_bytes,
    planned_parts,
    result_shape,
)
from lightsplit.experiments.presets import without_wire
from lightsplit.protocol import STEP_KINDS, Contract, Wire
from lightsplit.protocol.messages import LOSS_BYTES
from lightsplit.runs import EVALUATION_BATCH, Progress

_MODEL = ("task", "split", "training", "owners")  # the tables that raw traffic needs


def step_ratio(progress: Progress, contract: Contract) -> float | None:
    """Return the step ratio: bytes of all messages of all steps, raw fp32 over ours.

    None where no message is sent.
    """
    ours = sum(progress.bytes[kind] for kind in (*STEP_KINDS, "labels"))
    return raw_step_bytes(progress, contract) / ours if ours else None


def total_ratio(
    experiment: Experiment, progress: Progress, contract: Contract
) -> float:
    """Return the total ratio: bytes of everything that crosses, raw fp32 over ours."""
    raw_steps = raw_step_bytes(progress, contract)
    counts = progress.bytes
    return raw_total_bytes(experiment, counts, raw_steps) / counts["total"]


def raw_step_bytes(progress: Progress, contract: Contract) -> int:
    """Return the bytes that the same steps take with the raw codec in fp32."""
    activations = 2 * 4 * progress.samples * math.prod(contract.activation_shape)
    if contract.topology == "vanilla":
        losses = LOSS_BYTES * progress.steps
        labels = progress.samples * torch.int64.itemsize
        return activations + labels + losses
    return activations + 2 * 4 * progress.samples * math.prod(contract.output_shape)


def raw_total_bytes(
    experiment: Experiment, counts: Mapping[str, int], raw_steps: int
) -> float:
    """Return the bytes that the same run takes with raw activations.

    Args:
        experiment: that was run.
        counts: its bytes by kind.
        raw_steps: the bytes of its steps with the raw codec.
    """
    twin = _raw_twin(experiment)
    total: float = raw_steps + counts["framing"] + counts["setup"]
    for kind, size in (("evaluation", _evaluation_bytes), ("hand_off", _hand_off)):
        if experiment.sends_once:  # neither has one size in all phases
            total += counts[kind]
        elif counts[kind]:
            total += counts[kind] * size(twin) / size(experiment)
    return total


def _raw_twin(experiment: Experiment) -> Experiment:
    """Return the same run without a codec, wire settings or further parts."""
    tables = without_wire(experiment.tables())
    kept = {name: table for name, table in tables.items() if name in _MODEL}
    kept["split"] = {k: v for k, v in kept["split"].items() if k != "release"}
    kept["training"] = {
        k: v for k, v in kept["training"].items() if k != "local_epochs"
    }
    return make_experiment({**kept, "codec": {"name": "raw"}})


def _evaluation_bytes(experiment: Experiment) -> float:
    """Return the payload of a sample that is evaluated, up and down."""
    cuts, rows = plan_cuts(experiment, planned_parts(experiment)), EVALUATION_BATCH
    wire = Wire(cuts.codec, cuts.output_codec, make_formats(experiment))
    code = wire.layout("code", rows).code_bytes
    if cuts.output_codec is None:  # plain logits
        return code / rows + 4 * math.prod(result_shape(experiment))
    return (code + wire.layout("output", rows).code_bytes) / rows


def _hand_off(experiment: Experiment) -> int:
    return hand_off_bytes(experiment, plan_cuts(experiment, planned_parts(experiment)))

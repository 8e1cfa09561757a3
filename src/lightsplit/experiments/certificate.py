"""The certificate of a code: statements about it that need no attack.

    bits of one code × releases   what the server gets about one sample, in bits
    distinct codes M of N samples  no attack that sees one code per sample can name
                                   more than M of the N
    conditional entropy            bits that a code says beyond the label, at most
    ε of the codes, ε of the labels  where clients draw noise for them

M and the entropy are measured on test samples, with the codes of the trained run. They
describe these data on average, not the worst case. Whoever holds the trained head
measures both; a server without one counts the codes that it read in the last
evaluation, and takes the client whose codes tell the most.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lightsplit.codecs import Code, Codec, FewBits
from lightsplit.data import SampleSet
from lightsplit.deployment.code_count import SAMPLES, CodesSeen
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.label_protections import label_promise
from lightsplit.experiments.private_codes import dp_promise
from lightsplit.nesting import to_device
from lightsplit.objectives.bits import binary_entropy
from lightsplit.protocol import Wire
from lightsplit.runtime import Client

CHUNK = 500
ABOUT = (
    "the codes at the front cut: how much they can tell the server about a sample, "
    "whatever attack it makes; distinct codes and entropy are those of the samples "
    "counted here, on average"
)
LABELS = "labels, which outputs and their gradients give away"
DRAWN_LABELS = "labels beyond their own ε"
REST = "gradients of the codes; a head that is handed on"
WORST = "; the worst case of a single sample"


def code_bits(wire: Wire) -> int:
    """Return all bits that tell of one sample in one code; 0 if nothing is sent."""
    if not wire.codec.is_sent:
        return 0
    return wire.codec.packed_bits or 8 * wire.layout("code", 1).code_bytes


def promised(experiment: Experiment, wire: Wire) -> dict[str, Any]:
    """Return the part of the certificate that is known before a run."""
    bits = code_bits(wire)
    releases = experiment.releases if bits else 0
    labels = label_promise(experiment)
    left = LABELS if labels["label_epsilon"] is None else DRAWN_LABELS
    private = dp_promise(experiment, wire.codec)
    worst = WORST if private["epsilon"] is None else ""
    return {
        "bits_per_code": bits,
        "releases": releases,
        "bits_per_sample": bits * releases,
        **private,
        **labels,
        "about": ABOUT,
        "not_about": f"{left}; {REST}{worst}",
    }


def measured(client: Client, samples: SampleSet) -> dict[str, Any]:
    """Return the part that is measured on codes of the trained run.

    Args:
        client: whose head and encoder make the codes.
        samples: of which the first 2,000 are coded.
    """
    codec = client.side.codec
    count = min(SAMPLES, len(samples))
    if not codec.is_sent:
        return {"samples": count, "distinct_codes": min(1, count)} | _nothing()
    rows, labels = _codes(client, samples, count)
    distinct = len(torch.unique(rows, dim=0))
    pairs = _with_labels(rows, labels)
    return {
        "samples": count,
        "distinct_codes": distinct,
        "distinct_codes_with_labels": None if pairs is None else len(pairs),
        "reidentification_bound": distinct / count,
        "conditional_entropy": _entropy(codec, rows, labels),
    }


def counted(seen: CodesSeen | None) -> dict[str, Any]:
    """Return the part that a server can count, which knows neither inputs nor labels.

    Args:
        seen: the codes that it read in the last evaluation; None if there were none.
    """
    if seen is None:
        return {}
    return {
        "samples": seen.samples,
        "distinct_codes": seen.distinct,
        "reidentification_bound": seen.bound,
    }


def conditional_entropy(bits: Tensor, labels: Tensor) -> float:
    """Return Σ_y share(y) Σ_j h₂(p_j|y) of bits ±1 (N, k), in bits.

    Example:
        >>> bits = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [1.0, 1.0]])
        >>> round(conditional_entropy(bits, torch.tensor([0, 0, 1])), 3)
        0.667
    """
    total = 0.0
    for label in torch.unique(labels):
        own = bits[labels == label]
        share = len(own) / len(bits)
        total += share * float(binary_entropy((own > 0).float().mean(0)).sum())
    return total


def _nothing() -> dict[str, Any]:
    return {
        "distinct_codes_with_labels": None,
        "reidentification_bound": 0.0,
        "conditional_entropy": 0.0,
    }


def _codes(
    client: Client, samples: SampleSet, count: int
) -> tuple[Tensor, Tensor | None]:
    """Return the codes as the server reads them outside training, and the classes."""
    was_training = client.model.training
    client.model.eval()
    rows, labels = [], []
    with torch.no_grad():
        for chunk in torch.split(torch.arange(count), CHUNK):
            inputs, truth = samples.batch(chunk)
            rows.append(_row_of_each(client, inputs))
            labels.append(truth)
    client.model.train(was_training)
    return torch.cat(rows), _classes(labels)


def _row_of_each(client: Client, inputs: Any) -> Tensor:
    codec, wire = client.side.codec, client.wire
    moved = to_device(inputs, client.device)
    with client.model.seeded("certificate"):
        code: Code = client.side.disturb(client.side.encode(moved))
    return codec.rows(wire.as_received(code)).flatten(1).cpu()


def _classes(labels: Sequence[Any]) -> Tensor | None:
    if not all(isinstance(truth, Tensor) and truth.ndim == 1 for truth in labels):
        return None
    joined = torch.cat(list(labels))
    return None if joined.is_floating_point() else joined


def _with_labels(rows: Tensor, labels: Tensor | None) -> Tensor | None:
    if labels is None:
        return None
    pairs = torch.cat([rows, labels.unsqueeze(1).to(rows)], dim=1)
    distinct: Tensor = torch.unique(pairs, dim=0)
    return distinct


def _entropy(codec: Codec, rows: Tensor, labels: Tensor | None) -> float | None:
    is_bits = isinstance(codec, FewBits) and codec.levels == 2
    return conditional_entropy(rows, labels) if is_bits and labels is not None else None

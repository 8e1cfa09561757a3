"""NoPeek: the distance correlation between inputs and activations.

    a_ij = ‖x_i − x_j‖   b_ij = ‖z_i − z_j‖       A, B: the same, doubly centred
    dCor = √(mean A∘B) / √(√(mean A∘A) · √(mean B∘B))

It is 1 if activations are a scaled and turned copy of the inputs, and 0 only if the two
are independent. Distances are Euclidean; with squared ones, as in some published code,
it would be another quantity. A batch should have 32 samples or more.

Nothing about the messages changes. A server that returns false gradients trains the
head for its own ends all the same.

Vepakomma, Singh, Gupta, Raskar: NoPeek: information leakage reduction to share
activations in distributed deep learning, ICDMW 2020.
"""

import torch
from torch import Tensor

from lightsplit.errors import CodecError
from lightsplit.objectives.base import OBJECTIVES, ClientView, Objective
from lightsplit.part_facts import PartFacts

_LEAST = 1e-12  # below a square root, whose derivative at 0 is infinite


@OBJECTIVES.register("nopeek")
class NoPeek(Objective):
    """Makes activations say little about the distances between inputs."""

    name = "nopeek"
    facts = PartFacts(
        source="Vepakomma et al., ICDMW 2020",
        assumes="inputs that are one tensor of numbers; batches of 32 or more",
        client_cost="distances between all samples of a batch",
        attacker="a server that sends false gradients overrides the term",
        status="faithful",
    )

    def forward(self, view: ClientView) -> Tensor:
        """Return the distance correlation of inputs and activations of one batch."""
        inputs = view.inputs
        if not isinstance(inputs, Tensor) or not inputs.is_floating_point():
            raise CodecError(
                "nopeek compares activations with inputs that are one tensor of "
                "numbers; this task has other inputs"
            )
        return distance_correlation(inputs.flatten(1), view.activation.flatten(1))


def distance_correlation(one: Tensor, other: Tensor) -> Tensor:
    """Return the distance correlation of the rows of two matrices.

    Example:
        >>> rows = torch.tensor([[0.0], [1.0], [3.0]])
        >>> distance_correlation(rows, 5 - 2 * rows)
        tensor(1.)
    """
    if len(one) < 2:
        return other.sum() * 0
    first, second = _centred_distances(one), _centred_distances(other)
    covariance = _root((first * second).mean())
    variances = _root((first * first).mean()) * _root((second * second).mean())
    return covariance / _root(variances)


def _centred_distances(rows: Tensor) -> Tensor:
    """Return distances between all rows; the mean of each row and column is 0."""
    # Products of matrices would be faster, and make small distances inexact.
    distances = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    means = distances.mean(dim=0)
    return distances - means - means.unsqueeze(1) + means.mean()


def _root(number: Tensor) -> Tensor:
    return number.clamp(min=_LEAST).sqrt()

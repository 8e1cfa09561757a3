"""Conditional entropy maximisation: noise, and clusters no wider than the noise.

    sent = sigmoid(z̃) + σ·n                    n: normal, from the client's secret
    mean_y Σ_j w_j · relu(log(v_j + ε) − log(τσ² + ε))             ε = 0.01

Each class y has a few clusters of codes. w_j is the share of the batch's samples of y
in cluster j, and v_j their mean squared distance, per value, from its centre. The term
pulls samples together until the noise covers the differences that are left. The
sigmoid keeps a head from outgrowing the noise.

Centres are running means; a centre that nobody has been near yet starts at a sample
that is far from the others (k-means++).
"""

import math

import torch
from torch import Tensor

from lightsplit.codecs import Code, Codec
from lightsplit.errors import ConfigError
from lightsplit.objectives.base import OBJECTIVES, ClientView, Objective
from lightsplit.objectives.bits import check_classes, one_hot
from lightsplit.part_facts import PartFacts

_EPSILON = 0.01


@OBJECTIVES.register("cem")
class ConditionalEntropyMaximisation(Objective):
    """Adds noise to codes, and pulls codes into clusters that the noise covers.

    Args:
        codec: the codec of the front cut.
        classes: number of classes.
        sigma: standard deviation of the noise; default: 0.05.
        clusters: clusters per class; default: 5.
        tau: variance within a cluster, as a share of the noise's; default: 0.125.
        memory: share of a centre that each batch keeps; default: 0.9.
    """

    name = "cem"
    facts = PartFacts(
        source="Xia et al., CVPR 2025",
        assumes="labels that are classes; continuous codes",
        client_cost="distances to a few centres per class; noise",
        attacker="expectation over the noise; averages over releases",
        status="adapted",
    )
    centres: Tensor
    known: Tensor

    def __init__(
        self,
        codec: Codec,
        classes: int | None,
        *,
        sigma: float = 0.05,
        clusters: int = 5,
        tau: float = 0.125,
        memory: float = 0.9,
    ) -> None:
        super().__init__()
        if codec.packed_bits or not codec.is_sample_wise:
            raise ConfigError(
                "cem needs a code of continuous numbers, one row per sample; got codec "
                f"{codec.name!r}"
            )
        if not (sigma > 0 and clusters >= 1 and tau > 0 and 0 <= memory < 1):
            raise ConfigError(
                "cem needs sigma and tau above 0, at least 1 cluster and a memory from "
                f"0 to below 1, got {sigma}, {tau}, {clusters} and {memory}"
            )
        self.classes = check_classes(self.name, classes)
        self.sigma = sigma
        self.bound = math.log(tau * sigma**2 + _EPSILON)
        self.memory = memory
        shape = (self.classes, clusters, codec.code_size)
        self.register_buffer("centres", torch.zeros(shape))
        self.register_buffer("known", torch.zeros(shape[:2], dtype=torch.int64))

    def disturb(self, code: Code) -> Code:
        """Return the bounded code with noise, in training and in prediction."""
        bounded = code.values.sigmoid()
        noise = self.sigma * torch.randn_like(bounded.detach())
        return code._replace(values=bounded + noise)

    def forward(self, view: ClientView) -> Tensor:
        """Return how far clusters are wider than the noise covers."""
        rows = view.code.values.flatten(1).sigmoid()
        member = one_hot(view.labels, self.classes)
        present = member.sum(0).nonzero().flatten().tolist()
        terms = [self._class_term(rows[member[:, c] > 0], c) for c in present]
        return torch.stack(terms).mean()

    def _class_term(self, rows: Tensor, label: int) -> Tensor:
        if self.training:
            self._start_centres(rows.detach(), label)
        nearest = self._distances(rows.detach(), label).argmin(1)
        belongs = torch.nn.functional.one_hot(nearest, self.centres.shape[1])
        belongs = belongs.to(rows.dtype)
        counts = belongs.sum(0)
        distances = (rows - self.centres[label][nearest]).square().mean(1)
        variances = (belongs.T @ distances) / counts.clamp(min=1)
        excess = ((variances + _EPSILON).log() - self.bound).relu()
        if self.training:
            self._move_centres(rows.detach(), label, belongs)
        return (counts / counts.sum()) @ excess

    def _distances(self, rows: Tensor, label: int) -> Tensor:
        """Return squared distances to the centres, infinite to unknown ones."""
        distances = torch.cdist(rows, self.centres[label]).square()
        is_known = self.known[label] > 0
        if not bool(is_known.any()):  # in prediction before any training
            return distances
        return distances.masked_fill(~is_known, math.inf)

    def _start_centres(self, rows: Tensor, label: int) -> None:
        for cluster in range(self.centres.shape[1]):
            if self.known[label, cluster]:
                continue
            odds = rows.new_ones(len(rows))
            if bool(self.known[label].any()):
                odds = self._distances(rows, label).amin(1)
            if not float(odds.sum()) > 0:
                return  # fewer different samples than clusters
            chosen = int(torch.multinomial(odds, 1))
            self.centres[label, cluster] = rows[chosen]
            self.known[label, cluster] = 1

    def _move_centres(self, rows: Tensor, label: int, belongs: Tensor) -> None:
        counts = belongs.sum(0).unsqueeze(1)
        means = (belongs.T @ rows) / counts.clamp(min=1)
        old = self.centres[label]
        moved = self.memory * old + (1 - self.memory) * means
        self.centres[label] = torch.where(counts > 0, moved, old)

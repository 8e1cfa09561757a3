"""Noise at the cut: bounded codes with fresh noise, from the client's secret.

    sent = bounded(z̃) + n

    bound   tanh   each value by tanh
            clip   each code scaled down to a norm of at most S
    kind    laplace     scale b (standard deviation b·√2)
            gaussian    standard deviation σ

It wraps any codec of continuous numbers, in training and in prediction. The bound keeps
a head from outgrowing the noise. It promises nothing: for an ε, with an accountant and
noise that resists an attacker who knows the other samples, use ``dp``.

Titcombe, Hall, Papadopoulos, Romanini: Practical defences against model inversion
attacks for split neural networks, 2021.
"""

from typing import Literal

import torch
from torch import Tensor

from lightsplit.codecs import Code, Codec
from lightsplit.errors import ConfigError
from lightsplit.objectives.base import OBJECTIVES, ClientView, Objective
from lightsplit.part_facts import PartFacts


@OBJECTIVES.register("noise")
class Noise(Objective):
    """Bounds codes and adds noise, in training and in prediction.

    Args:
        kind: laplace (default) or gaussian.
        scale: scale b of Laplace noise, or standard deviation of Gaussian noise;
            default: 0.5.
        bound: tanh (default), or clip, which bounds the norm of a code.
        norm: largest norm of a clipped code; default: 1.
    """

    name = "noise"
    facts = PartFacts(
        source="Titcombe et al., 2021",
        assumes="continuous codes, a row per sample",
        client_cost="a random number for each value",
        attacker="expectation over the noise; averages over releases of one sample",
        status="faithful",
    )

    def __init__(
        self,
        *,
        kind: Literal["laplace", "gaussian"] = "laplace",
        scale: float = 0.5,
        bound: Literal["tanh", "clip"] = "tanh",
        norm: float = 1.0,
    ) -> None:
        super().__init__()
        if not (scale > 0 and norm > 0):
            raise ConfigError(
                f"noise needs a scale and a norm above 0, got {scale} and {norm}"
            )
        self.kind = kind
        self.scale = scale
        self.bound = bound
        self.norm = norm

    def check(self, codec: Codec, *, has_tail: bool) -> None:  # noqa: ARG002
        """Refuse a code that is packed as bits, and one that mixes samples."""
        if codec.packed_bits or not codec.is_sample_wise:
            raise ConfigError(
                "noise needs a code of continuous numbers, one row per sample; got "
                f"codec {codec.name!r}"
            )

    def disturb(self, code: Code) -> Code:
        """Return the bounded code with noise."""
        bounded = self._bounded(code.values)
        return code._replace(values=bounded + self._drawn(bounded.detach()))

    def forward(self, view: ClientView) -> Tensor:
        """Return 0: the noise itself is all that this objective does."""
        return view.latent.new_zeros(())

    def _bounded(self, values: Tensor) -> Tensor:
        if self.bound == "tanh":
            return values.tanh()
        return clipped(values, self.norm)

    def _drawn(self, like: Tensor) -> Tensor:
        if self.kind == "gaussian":
            return self.scale * torch.randn_like(like)
        # A difference of two exponential numbers is a Laplace number.
        first = torch.empty_like(like).exponential_()
        return self.scale * (first - torch.empty_like(like).exponential_())


def clipped(values: Tensor, norm: float) -> Tensor:
    """Return codes (B, …), each scaled down to a norm of at most ``norm``."""
    norms = values.flatten(1).norm(dim=1).clamp(min=norm)
    factors: Tensor = norm / norms
    return values * factors.view(-1, *[1] * (values.ndim - 1))

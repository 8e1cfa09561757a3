"""How likely each whole number of a code is: a learned density of each channel.

    p(y) = C(y + ½) − C(y − ½),    C(y) = Σ_k w_k · sigmoid((y − m_k) / s_k)

A factorised prior after Ballé et al. (ICLR 2018), trained with the code: in place of
rounding, the code gets uniform noise from −½ to ½, and −log₂ p is the bits that it will
take. Ours is a mixture of three logistic densities, in place of their small network.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

_COMPONENTS = 3
_LEAST = 1e-9  # a likelihood below it has no useful logarithm


class FactorisedPrior(nn.Module):
    """The density of each channel, independent of all others.

    Args:
        channels: of the code.
        spread: of the first densities, about the standard deviation of the code.
    """

    def __init__(self, channels: int, spread: float = 4.0) -> None:
        super().__init__()
        means = torch.linspace(-spread, spread, _COMPONENTS)
        first = math.log(math.expm1(spread / 2))
        self.weights = nn.Parameter(torch.zeros(channels, _COMPONENTS))
        self.means = nn.Parameter(means.repeat(channels, 1))
        self.scales = nn.Parameter(torch.full((channels, _COMPONENTS), first))

    def bits(self, code: Tensor) -> Tensor:
        """Return the bits of each sample of a code (B, C, n)."""
        return -self._likelihood(code).clamp(min=_LEAST).log2().sum(dim=(1, 2))

    def shares(self, reach: int) -> Tensor:
        """Return the likelihood of each level from −reach to reach, (C, levels).

        The first and the last level stand for all that lies beyond them too.
        """
        between = torch.arange(-reach, reach, dtype=torch.float32) + 0.5
        with torch.no_grad():
            every = between.to(self.means.device).repeat(1, len(self.means), 1)
            below = self._cumulated(every).squeeze(0)
            ends = below.new_zeros(len(below), 1)
            whole = torch.cat([ends, below, ends + 1], dim=1)
            return whole.diff(dim=1).clamp(min=_LEAST)

    def _likelihood(self, code: Tensor) -> Tensor:
        return self._cumulated(code + 0.5) - self._cumulated(code - 0.5)

    def _cumulated(self, code: Tensor) -> Tensor:
        scales = softplus(self.scales) + 0.01
        each = (code.unsqueeze(-1) - self.means.unsqueeze(1)) / scales.unsqueeze(1)
        weights = self.weights.softmax(dim=-1).unsqueeze(1)
        return (each.sigmoid() * weights).sum(dim=-1)

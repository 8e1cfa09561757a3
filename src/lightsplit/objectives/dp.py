"""Differential privacy of codes: a promise about every single sample.

    few bits   the whole code, one of K, is kept with probability e^ε / (e^ε + K − 1)
               and else replaced by one of the others (randomised response): ε, δ = 0
    floats     each code is scaled down to a norm of at most S, and normal noise of
               deviation σ is added: ε with δ; replacing a sample moves its code by at
               most 2·S, and so σ / 2S is what the accountant counts

Whatever the server computes from the codes of a sample, it can tell any two samples
apart only as far as ε allows. The promise covers every code that leaves the client, in
training, tests and predictions alike. Releases add up: σ is chosen for all releases of
a run, and randomised response is refused where codes are sent more than once. A code
with a NaN or an infinity is replaced by a legal one: an error, or a NaN, would reveal
that this sample made the head overflow.

It covers codes and nothing else. Outputs and their gradients still cross, and a head
that is trained on private data and handed on needs a promise of its own.
"""

import math
from typing import Any

import torch
from torch import Tensor

from lightsplit.codecs import Code, Codec, FewBits
from lightsplit.codecs.few_bits import values_of
from lightsplit.errors import ConfigError
from lightsplit.objectives import accountants
from lightsplit.objectives.base import OBJECTIVES, ClientView, Objective
from lightsplit.objectives.noise import clipped
from lightsplit.objectives.private_draws import draw_normal, draw_words
from lightsplit.part_facts import PartFacts
from lightsplit.randomised_response import changed, kept

MOST_EPSILON = 30.0
MOST_BITS = 32
SCOPE = (
    "the codes of a sample, for a given head: not its label, outputs and their "
    "gradients, nor a head that was trained on it and is handed on"
)


@OBJECTIVES.register("dp")
class DifferentialPrivacy(Objective):
    """Makes codes differentially private: ε for all that is sent of a sample.

    Args:
        codec: the codec of the front cut.
        releases: how often the code of a sample is sent.
        epsilon: of all releases of a sample together; less hides more.
        delta: probability that ε does not hold, for codes of floats; default: 1e-5.
        norm: largest norm S of a code of floats; default: 1.
    """

    name = "dp"
    facts = PartFacts(
        source="Warner, 1965; Dwork et al., 2006",
        assumes="few bits that are sent once, or codes of floats",
        client_cost="a random number for each code, or for each value",
        attacker="knows the mechanism, and every sample but one",
        status="faithful",
    )

    def __init__(
        self,
        codec: Codec,
        releases: int,
        *,
        epsilon: float,
        delta: float = 1e-5,
        norm: float = 1.0,
    ) -> None:
        super().__init__()
        if not 0 < epsilon <= MOST_EPSILON:
            raise ConfigError(
                f"the epsilon of dp must be above 0 and at most {MOST_EPSILON:g}, got "
                f"{epsilon:g}"
            )
        if not (0 < delta < 1 and 0 < norm < math.inf):
            raise ConfigError(
                "dp needs a delta between 0 and 1 and a norm above 0, got "
                f"{delta:g} and {norm:g}"
            )
        _check_codec(codec)
        self.releases = releases
        self.mechanism: _Response | _Gaussian
        if isinstance(codec, FewBits):
            self.mechanism = _Response(codec, releases, epsilon)
        else:
            self.mechanism = _Gaussian(epsilon, delta, norm, releases)

    def disturb(self, code: Code) -> Code:
        """Return the private code, in training and in prediction."""
        return code._replace(values=self.mechanism.private(code.values))

    def forward(self, view: ClientView) -> Tensor:
        """Return 0: this objective only makes codes private."""
        return view.latent.new_zeros(())

    def promise(self) -> dict[str, Any]:
        """Return the promise, in an accountant's figures."""
        return {**self.mechanism.promise(), "dp_scope": SCOPE}


class _Response:
    """Randomised response on the number of a code among all codes."""

    def __init__(self, codec: FewBits, releases: int, epsilon: float) -> None:
        if codec.count != codec.code_size:
            raise ConfigError(
                "dp replaces the code of a sample as a whole, and codes of every token "
                "are too many for one of them to be kept: drop per_token"
            )
        if codec.levels**codec.code_size > 2**MOST_BITS:
            raise ConfigError(
                f"dp on codes of more than {MOST_BITS} bits would keep almost none of "
                f"them: choose fewer than {codec.packed_bits} bits"
            )
        if releases > 1:
            raise ConfigError(
                f"each of {releases} releases of a code of few bits would cost ε again "
                f"({releases}·ε in all), with a head that moves: give --release once"
            )
        self.levels = codec.levels
        self.choices = codec.levels**codec.code_size
        self.epsilon = epsilon
        places = torch.arange(codec.code_size, dtype=torch.int64)
        self.weights = codec.levels**places  # of each value in the code's number

    def private(self, values: Tensor) -> Tensor:
        """Return each row as it is, or replaced by another of all possible rows."""
        values = values.nan_to_num(-1.0, 1.0, -1.0)
        words = draw_words(2 * len(values), values).reshape(2, len(values))
        chance, shift = (torch.from_numpy((part >> 11).astype("i8")) for part in words)
        # At least the exact chance, so that ε is at most what was asked for.
        least = math.ceil(changed(self.epsilon, self.choices) * 2**53)
        levels = ((values.detach().cpu() + 1) * ((self.levels - 1) / 2)).round().long()
        number = (levels * self.weights).sum(dim=1)
        other = (number + 1 + shift % (self.choices - 1)) % self.choices
        others = values_of(other[:, None] // self.weights % self.levels, self.levels)
        is_changed = (chance < least)[:, None].to(values.device)
        return torch.where(is_changed, others.to(values), values)

    def promise(self) -> dict[str, Any]:
        share = kept(self.epsilon, self.choices)
        return {
            "epsilon": accountants.response_epsilon(share, self.choices),
            "delta": 0.0,
            "dp_mechanism": "randomised response",
            "dp_kept": share,
        }


class _Gaussian:
    """Codes of bounded norm with normal noise."""

    def __init__(
        self, epsilon: float, delta: float, norm: float, releases: int
    ) -> None:
        self.delta = delta
        self.norm = norm
        self.releases = releases
        self.multiplier = accountants.noise_multiplier(epsilon, delta, releases)
        self.sigma = 2 * norm * self.multiplier

    def private(self, values: Tensor) -> Tensor:
        """Return the clipped codes with noise."""
        bounded = clipped(values.nan_to_num(0.0, 0.0, 0.0), self.norm)
        return bounded + self.sigma * draw_normal(bounded.detach())

    def promise(self) -> dict[str, Any]:
        spent = accountants.gaussian_epsilon(self.multiplier, self.delta, self.releases)
        return {
            "epsilon": spent,
            "delta": self.delta,
            "dp_mechanism": f"Gaussian noise of deviation {self.sigma:.4g} behind "
            f"clipping to a norm of {self.norm:g}",
            "dp_kept": None,
        }


def _check_codec(codec: Codec) -> None:
    """Refuse a codec without a separate code per sample that noise can cover."""
    if not codec.is_sample_wise:
        raise ConfigError(
            f"codec {codec.name!r} mixes the samples of a batch, and dp needs a code "
            "of each sample by itself"
        )
    if codec.layout(1).side:
        raise ConfigError(
            f"codec {codec.name!r} sends the places of values beside them, where no "
            "noise of dp would cover them: choose a codec without places"
        )
    if codec.packed_bits and not isinstance(codec, FewBits):
        raise ConfigError(
            f"codec {codec.name!r} writes its numbers by itself, and noise of dp would "
            "be cut off again: choose a codec of floats, lightsplit-b or fsq"
        )

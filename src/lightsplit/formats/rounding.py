"""Rounding to whole numbers: nearest, stochastic, or by subtractive dither.

    nearest      q = round(y)                    read as q
    stochastic   q = floor(y + u)                read as q            E[q] = y
    dither       q = round(y + u − 1)            read as q − (u − 1)  error uniform, ≤ ½

u is drawn from (0, 1), once for each number, by both ends from the same stream. The
dither lies in (−1, 0) instead of around 0, so that |y| ≤ 127 fits into −128 … 127: the
highest possible result is the highest number that fits, so nothing is ever clipped,
which would add a bias.
"""

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from lightsplit import seeding
from lightsplit.registry import Registry

_BITS = 16  # bits of one draw; each number of Philox gives four draws


class Stream:
    """Random numbers that sender and receiver draw alike, in the same order.

    ``names`` say what the numbers are for, (client, step, message) for example. The
    generator is made when the first number is drawn.
    """

    def __init__(self, seed: int, *names: int | str) -> None:
        self._seed = seed
        self._names = names

    def bits(self, shape: torch.Size) -> Tensor:
        """Return numbers from 0 to 65,535 as int32."""
        count = shape.numel()
        raw = self._generator.random_raw(-(-count // 4))
        drawn = raw.astype("<u8", copy=False).view("<u2")[:count].astype(np.int32)
        return torch.from_numpy(drawn).view(shape)

    def uniform(self, shape: torch.Size) -> Tensor:
        """Return numbers strictly between 0 and 1, symmetric about ½."""
        return (self.bits(shape).float() + 0.5) * 2.0**-_BITS

    @cached_property
    def _generator(self) -> np.random.BitGenerator:
        return seeding.numpy_generator(self._seed, *self._names).bit_generator


class Rounding:
    """A way to round numbers to whole numbers, and to read them back."""

    name: str

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def round_(self, scaled: Tensor, limit: int) -> Tensor:
        """Round numbers of at most ``limit`` to whole numbers, in place."""
        raise NotImplementedError

    def restore_(self, whole: Tensor) -> Tensor:
        """Return the numbers that the whole numbers stand for, in place."""
        return whole


ROUNDINGS: Registry[Rounding] = Registry("rounding")


@ROUNDINGS.register("nearest")
class Nearest(Rounding):
    """Rounds to the nearest whole number: the least error, but biased."""

    name = "nearest"

    def round_(self, scaled: Tensor, limit: int) -> Tensor:  # noqa: ARG002
        """Round numbers of at most ``limit`` to whole numbers, in place."""
        return scaled.round_()


@ROUNDINGS.register("stochastic")
class Stochastic(Rounding):
    """Rounds up or down at random: right on average, with about √2 times the error."""

    name = "stochastic"

    def round_(self, scaled: Tensor, limit: int) -> Tensor:
        """Round numbers of at most ``limit`` to whole numbers, in place."""
        noise = self.stream.uniform(scaled.shape).to(scaled.device)
        # Rounding in the addition alone can turn limit + u into limit + 1.
        return scaled.add_(noise).floor_().clamp_(max=limit)


@ROUNDINGS.register("dither")
class Dither(Rounding):
    """Rounds to the nearest after adding noise that the reader subtracts: unbiased."""

    name = "dither"

    def round_(self, scaled: Tensor, limit: int) -> Tensor:  # noqa: ARG002
        """Round numbers of at most ``limit`` to whole numbers, in place."""
        return scaled.add_(self._noise(scaled)).round_()

    def restore_(self, whole: Tensor) -> Tensor:
        """Return the numbers that the whole numbers stand for, in place."""
        return whole.sub_(self._noise(whole))

    def _noise(self, like: Tensor) -> Tensor:
        return self.stream.uniform(like.shape).sub_(1).to(like.device)

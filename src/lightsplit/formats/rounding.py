"""Rounding to whole numbers: nearest, stochastic, or by subtractive dither.

    nearest      q = round(y)                    read as q
    stochastic   q = floor(y + u)                read as q            E[q] = y
    dither       q = round(y + u − 1)            read as q − (u − 1)  error uniform, ≤ ½

u is drawn from (0, 1), one for each number, by both ends from the same stream. The
dither lies in (−1, 0) and not around 0, so that |y| ≤ 127 fits into −128 … 127: the
highest whole number that can come out is the highest one that fits, and nothing is ever
clipped, which would bias it.
"""

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from lightsplit import seeding
from lightsplit.registry import Registry

_BITS = 16  # of one draw; four are taken from each number of Philox


class Stream:
    """Random numbers that sender and receiver draw alike, in the same order.

    ``names`` say what for, (client, step, message) for example. Nothing is drawn, and
    no generator made, until it is asked for.
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
    """How numbers become whole, and what whole numbers stand for."""

    name: str

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def round_(self, scaled: Tensor, limit: int) -> Tensor:
        """Make numbers of at most ``limit`` whole, in place."""
        raise NotImplementedError

    def restore_(self, whole: Tensor) -> Tensor:
        """Return what whole numbers stand for, in place."""
        return whole


ROUNDINGS: Registry[Rounding] = Registry("rounding")


@ROUNDINGS.register("nearest")
class Nearest(Rounding):
    """To the nearest whole number; the least error, but biased."""

    name = "nearest"

    def round_(self, scaled: Tensor, limit: int) -> Tensor:  # noqa: ARG002
        """Make numbers of at most ``limit`` whole, in place."""
        return scaled.round_()


@ROUNDINGS.register("stochastic")
class Stochastic(Rounding):
    """Up or down at random, right on average; the error is larger by about √2."""

    name = "stochastic"

    def round_(self, scaled: Tensor, limit: int) -> Tensor:
        """Make numbers of at most ``limit`` whole, in place."""
        noise = self.stream.uniform(scaled.shape).to(scaled.device)
        # limit + u can be rounded to limit + 1 by the addition, and by that alone.
        return scaled.add_(noise).floor_().clamp_(max=limit)


@ROUNDINGS.register("dither")
class Dither(Rounding):
    """Nearest after adding noise that the reader takes away: right on average too."""

    name = "dither"

    def round_(self, scaled: Tensor, limit: int) -> Tensor:  # noqa: ARG002
        """Make numbers of at most ``limit`` whole, in place."""
        return scaled.add_(self._noise(scaled)).round_()

    def restore_(self, whole: Tensor) -> Tensor:
        """Return what whole numbers stand for, in place."""
        return whole.sub_(self._noise(whole))

    def _noise(self, like: Tensor) -> Tensor:
        return self.stream.uniform(like.shape).sub_(1).to(like.device)

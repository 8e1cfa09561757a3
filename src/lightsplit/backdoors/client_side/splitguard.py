"""SplitGuard (Erdoğan et al. 2022): test the server with wrong labels at times.

    right labels ─► gradients R1, R2      an honest server's F is longer than R and
    wrong labels ─► gradients F           points elsewhere; a hijacker's F is like R

The gradients are those of the head's first weights. A server that learns to tell wrong
labels from right ones with a model of its own evades this (SplitSpy).
"""

import math
from collections import deque
from typing import ClassVar

import torch
from torch import Tensor, nn

from lightsplit.backdoors.client_side.base import INSPECTORS, Inspector
from lightsplit.seeding import numpy_generator

WAIT = 20  # steps before the first probe
SHARE = 0.1  # share of the later steps that are probes
ALPHA, BETA = 5.0, 2.0
PATIENCE = 3  # scores whose mean is compared with the threshold
THRESHOLD = 0.9  # the authors' cautious choice


@INSPECTORS.register("splitguard")
class SplitGuard(Inspector):
    """Sends wrong labels at times and checks whether the server reacts.

    Args:
        head: the head whose first weights' gradients are compared.
        classes: the number of classes.
        seed: seed of the draws.
        client: the client that draws.
    """

    name: ClassVar[str] = "splitguard"

    def __init__(
        self, head: nn.Module, *, classes: int, seed: int = 0, client: int = 0
    ) -> None:
        super().__init__()
        self._weights = next(head.parameters())
        self._classes = classes
        self._names = (seed, "splitguard", client)
        self._probed_at: int | None = None
        self._fake, self._first, self._second = _Mean(), _Mean(), _Mean()
        self._recent: deque[float] = deque(maxlen=PATIENCE)

    def probe(self, step: int, labels: Tensor) -> Tensor | None:
        """Return wrong labels, all shifted by the same amount, at some steps."""
        generator = numpy_generator(*self._names, step)
        if step < WAIT or generator.random() >= SHARE:
            return None
        self._probed_at = step
        return (labels + int(generator.integers(1, self._classes))) % self._classes

    def observe(
        self, step: int, values: Tensor, labels: Tensor, gradient: Tensor
    ) -> None:
        """Add the gradient of a step, and judge after a probe."""
        del labels
        if step < WAIT:
            return
        (found,) = torch.autograd.grad(
            values, self._weights, gradient, retain_graph=True
        )
        if step == self._probed_at:
            self._fake.add(found)
            self._judge(step)
        elif self._first.count <= self._second.count:
            self._first.add(found)
        else:
            self._second.add(found)

    def _judge(self, step: int) -> None:
        if not self._second.count:
            return
        self.score = _score(self._fake, self._first, self._second)
        self._recent.append(self.score)
        is_full = len(self._recent) == PATIENCE
        if is_full and sum(self._recent) / PATIENCE < THRESHOLD:
            self._alarm(step)


class _Mean:
    """The mean of vectors, and the mean of their lengths."""

    def __init__(self) -> None:
        self.count = 0
        self._sum: Tensor | None = None
        self._lengths = 0.0

    def add(self, gradient: Tensor) -> None:
        vector = gradient.detach().flatten().double()
        self._sum = vector if self._sum is None else self._sum + vector
        self._lengths += float(vector.norm())
        self.count += 1

    @property
    def vector(self) -> Tensor:
        assert self._sum is not None  # noqa: S101 asked only after add()
        return self._sum / self.count

    @property
    def length(self) -> float:
        return self._lengths / self.count


def _score(fake: _Mean, first: _Mean, second: _Mean) -> float:
    regular = (first.vector + second.vector) / 2
    length = (first.length + second.length) / 2
    far, near = abs(fake.length - length), abs(first.length - second.length)
    if far + near == 0:
        return _squashed(0.0)
    difference = _angle(fake.vector, regular) * far
    chance = _angle(first.vector, second.vector) * near
    return _squashed((difference - chance) / (far + near))


def _squashed(value: float) -> float:
    return float((1 / (1 + math.exp(-ALPHA * value))) ** BETA)


def _angle(first: Tensor, second: Tensor) -> float:
    cosine = torch.nn.functional.cosine_similarity(first, second, dim=0)
    return math.acos(max(-1.0, min(1.0, float(cosine))))

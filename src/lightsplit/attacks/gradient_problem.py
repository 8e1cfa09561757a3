"""The problem that gradient inversion solves: one image and its head's gradients.

    guess ─► head, encoder ─► code ─┬─► rest, label ─► loss               published
                                    └─► times the gradient of the code    adaptive

Either number has gradients for the client's weights; the guess is right if they equal
the observed ones.
"""

import copy
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lightsplit.attacks.base import Kind, Progress, silent
from lightsplit.attacks.capabilities import Reconstructs
from lightsplit.attacks.head_steps import HeadSteps
from lightsplit.attacks.knowledge import ClientCopy
from lightsplit.attacks.view import ServerView
from lightsplit.errors import AuditError
from lightsplit.seeding import scope

WHO = (
    "a server whose accomplice holds the shared head before and after a step of one "
    "image"
)


class Problem(NamedTuple):
    """One image to find.

    Attributes:
        client: head and encoder as they were.
        weights: of the client that are trained.
        wanted: their gradients.
        at_the_code: the gradient that the server returned.
        rest: from codes to logits.
        label: as it was sent, or read off; None if nobody knows it.
    """

    client: ClientCopy
    weights: list[Tensor]
    wanted: list[Tensor]
    at_the_code: Tensor
    rest: nn.Module
    label: Tensor | None

    def gradients(self, image: Tensor, target: Tensor | None) -> tuple[Tensor, ...]:
        """Return the gradients of an image (1, C, H, W), differentiable.

        The target is a label or soft label; without one the server's gradient counts.
        """
        code = self.client(image)
        if target is None:
            goal = (code * self.at_the_code).sum()
        else:
            goal = cross_entropy(self.rest(code), target)
        return torch.autograd.grad(goal, self.weights, create_graph=True)


class InvertsGradients(Reconstructs):
    """An attack on the gradients of single images."""

    kind: ClassVar[Kind] = "published"
    needs: ClassVar[tuple[str, ...]] = (
        "client",
        "image_shape",
        "classes",
        "head_steps",
    )
    threat_model = WHO

    def __init__(
        self,
        *,
        client: ClientCopy,
        image_shape: tuple[int, int, int],
        classes: int,
        head_steps: Callable[[], HeadSteps],
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.client = client
        self.image_shape = image_shape
        self.classes = classes
        self.head_steps = head_steps

    @abstractmethod
    def search(self, problem: Problem, start: Tensor) -> Tensor:
        """Return the image whose gradients are nearest, from a first guess."""

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return an image for every target; each had its own step."""
        steps, count = self.head_steps(), len(view.codes)
        if len(steps.at_the_code) != count:
            raise AuditError(
                f"{self.name} needs a step of each of {count} images, got "
                f"{len(steps.at_the_code)}"
            )
        client = copy.deepcopy(self.client).eval().requires_grad_(False)
        rest = copy.deepcopy(steps.rest).eval().requires_grad_(False)
        by_name = dict(client.named_parameters())
        weights = [by_name[name].requires_grad_() for name in steps.gradients]
        found = []
        for row in range(count):
            problem = Problem(
                client,
                weights,
                [each[row] for each in steps.gradients.values()],
                steps.at_the_code[row : row + 1],
                rest,
                self._label(steps, row),
            )
            with scope(self.seed, self.name, row):
                start = torch.randn(1, *self.image_shape).to(steps.at_the_code)
                found.append(self.search(problem, start))
            progress(row + 1, count)
        return torch.cat(found)

    def _label(self, steps: HeadSteps, row: int) -> Tensor | None:
        """Return the label if it was sent, or else as the last layer reveals it."""
        if steps.labels is not None:
            return steps.labels[row : row + 1]
        if steps.tail is None:
            return None
        return label_of(steps.tail[row : row + 1])


class Best:
    """The image of the lowest finite cost so far."""

    def __init__(self, image: Tensor) -> None:
        self.image = image.detach().clone()
        self._lowest = float("inf")

    def see(self, cost: Tensor, image: Tensor) -> None:
        """Keep the image if its cost is the lowest."""
        value = float(cost.detach())
        if value < self._lowest and bool(torch.isfinite(image).all()):
            self._lowest = value
            self.image = image.detach().clone()


def label_of(gradients: Tensor) -> Tensor:
    """Return the labels whose rows of the last layer's gradients (N, K, …) are lowest.

    With cross-entropy a row is (p − y) times the layer's inputs. Where these are not
    negative, as behind a ReLU, the label's own row is the only one below zero.
    """
    return gradients.flatten(2).sum(dim=2).argmin(dim=1)


def squared_distance(found: tuple[Tensor, ...], wanted: list[Tensor]) -> Tensor:
    """Return the sum of squared differences, relative to the squares of those wanted.

    L-BFGS stops when gradients fall below a fixed size. A network that is sure of an
    image has small gradients there, and the plain sum would end the search at its first
    step.
    """
    pairs = zip(found, wanted, strict=True)
    sums = [(ours - theirs).square().sum() for ours, theirs in pairs]
    length = torch.stack([theirs.square().sum() for theirs in wanted]).sum()
    return torch.stack(sums).sum() / length.clamp_min(1e-30)


def cosine_distance(found: tuple[Tensor, ...], wanted: list[Tensor]) -> Tensor:
    """Return one minus the cosine of all gradients together."""
    ours = torch.cat([each.flatten() for each in found])
    theirs = torch.cat([each.flatten() for each in wanted])
    product = ours.norm() * theirs.norm()
    distance: Tensor = 1 - (ours @ theirs) / product.clamp_min(1e-20)
    return distance

"""PCAT: a pseudo-client that learns beside the victim from the server's checkpoints.

Gao and Zhang, "PCAT: functionality and data stealing from split learning by
pseudo-client attack", USENIX Security 2023.

    known images ─► pseudo-client ─► codec ─► the server's network of this step ─► tail
                    cross-entropy teaches the pseudo-client alone (and its own tail)

    afterwards: a decoder is trained to invert the pseudo-client, and its image of a
    code is moved until the pseudo-client gives this code

The server's network is only ever updated by the victim, so nobody notices. In the
vanilla topology each known batch has the labels of the victim's batch; in the U-shape
labels are hidden, the batch is random, and a tail of the attacker's own infers labels.
Nobody tells it the head's layers: its pseudo-client is a plain network of two
convolutions.

    published   decoder and last descent see the code as the server's decoder lifts it
    adaptive    they see the code itself, brought to the pseudo-client's mean and
                spread; while it learns, the pseudo-client is drawn to the mean and the
                spread of the victim's codes; the descent stays near the decoder's image

In the U-shape only the server's network ties the published pseudo-client to the victim:
it may confuse one class with another, and its codes may be entirely different. (Digits,
raw, l2, 150 steps: labels 0 % and squared error 0.19; adaptive 97 % and 0.007, where
the mean image has 0.074.)

Where we differ: we found no released code. The inverse network is our decoder, and the
layers of the pseudo-client are ours. The authors begin late, when the victim's loss
falls; ``late_start`` does that, and so does a budget of the last steps.
"""

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lightsplit import seeding
from lightsplit.attacks.base import ATTACKS, Budget, Kind, Progress, at_least, silent
from lightsplit.attacks.capabilities import Guess
from lightsplit.attacks.decoder import EFFORTS
from lightsplit.attacks.decoder_training import decode, train_decoder
from lightsplit.attacks.first_weights import scaled_like
from lightsplit.attacks.image_descent import Descent, descend
from lightsplit.attacks.knowledge import ClientCopy, LabelledImages, Pairs, Setup
from lightsplit.attacks.learner import Learner, frozen
from lightsplit.attacks.learner import descend as step_down
from lightsplit.attacks.matching import ADAPTIVE, FORMS, giving, wanted
from lightsplit.attacks.online import CopiesTail
from lightsplit.attacks.pseudo_client import PseudoClient, make_pseudo_head
from lightsplit.attacks.steps import Seen
from lightsplit.attacks.view import ServerView, readable
from lightsplit.codecs import Code
from lightsplit.formats import AsReceived
from lightsplit.part_facts import PartFacts

LEARNING_RATE = 1e-3
CLOSER_STEPS = 300
CLOSER_RATE = 0.03
TV_WEIGHT = 0.01
NEAR = 3.0  # of the adaptive form
COUPLING = 10.0
WIDTH = 64
CHUNK = 256


@ATTACKS.register("pcat")
class PCAT(CopiesTail):
    """Trains a pseudo-client through the server's network, then inverts it.

    Attributes:
        lr: of the pseudo-client and its tail.
        late_start: steps that it watches before it learns.
        coupling: in the adaptive form the weight of codes like the victim's.
        closer_steps: of the last descent; 0 leaves the decoder's image.
        width: channels of the pseudo-client.
    """

    name = "pcat"
    kind: ClassVar[Kind] = "published"
    forms = FORMS
    needs = ("classes", "auxiliary", "setup")
    steps: ClassVar[Mapping[Budget, int]] = {"quick": 400, "short": 4_000}
    published_iterations = 0  # the paper's runs differ by dataset
    threat_model = "a server with some labelled images, during training"
    cost = "a step of the pseudo-client for each of the victim's, then a decoder"
    facts = PartFacts(
        source="Gao, Zhang, USENIX Security 2023",
        assumes="labelled images of the same kind",
        status="adapted",
    )

    def __init__(  # noqa: PLR0913
        self,
        *,
        classes: int,
        auxiliary: LabelledImages,
        setup: Setup,
        lr: float = LEARNING_RATE,
        late_start: int = 0,
        coupling: float = COUPLING,
        closer_steps: int = CLOSER_STEPS,
        width: int = WIDTH,
        **options: Any,
    ) -> None:
        super().__init__(classes=classes, auxiliary=auxiliary, setup=setup, **options)
        at_least(self.name, 0, lr=lr, late_start=late_start, closer_steps=closer_steps)
        at_least(self.name, 0, coupling=coupling)
        at_least(self.name, 1, width=width)
        self.late_start = late_start
        self.closer_steps = closer_steps
        self.coupling = coupling
        self._auxiliary = auxiliary
        image = tuple(auxiliary.images.shape[1:])
        with seeding.scope(self.seed, self.name, "networks"):
            head = make_pseudo_head(image, self.codec.shape, width)
            received = AsReceived(setup.formats, codec=self.codec)
            made: dict[str, nn.Module] = {
                "client": PseudoClient(head, self.codec, received)
            }
            if not self.is_told:
                made["tail"] = setup.tail()
        self.learners = {
            name: Learner(network.to(setup.device).train(), lr)
            for name, network in made.items()
        }

    def learn(self, seen: Seen, known: LabelledImages) -> None:
        """Teach the pseudo-client through the server's network of this step."""
        if self.iterations < self.late_start:
            return
        if seen.labels is not None:
            known = self._aligned(seen.labels, known)
        code = self._client.encode(known.images)
        output: Code = self.server(code)
        logits = self._tail(output) if not self.is_told else output.values
        loss = cross_entropy(logits, known.labels)
        if self.form == ADAPTIVE:
            loss = loss + self.coupling * unlike(code.values, seen.code.values)
        step_down([*self.learners.values()], [loss])

    def guess(self) -> Guess:
        """Return labels only: images come when training is over."""
        if self._latest is None or self.is_told:
            return Guess()
        return Guess(labels=self.read_labels(self._latest.code))

    def decode(self, seen: Seen) -> Tensor:
        """Return the images of a batch, by an inverse trained for this batch."""
        return self._inverted(readable(self.codec, seen.code), silent)

    @torch.no_grad()
    def read_labels(self, code: Code) -> Tensor:
        """Return the labels that the pseudo-tail gives."""
        self._tail.eval()
        labels: Tensor = self._tail(self.server(code)).argmax(dim=1)
        self._tail.train()
        return labels

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return the inverse's image of every code, moved until its code fits."""
        self.notes.append(f"learnt beside {self.iterations:,} steps of the victim")
        return self._inverted(view.codes, progress)

    def _inverted(self, codes: Tensor, progress: Progress) -> Tensor:
        """Return images of codes by an inverse of the pseudo-client as it is now."""
        client = frozen(copy.deepcopy(self._client))
        pairs = self._pairs(client)
        if self.form == ADAPTIVE:
            codes = scaled_like(codes, pairs.codes)
        goals = wanted(codes, self.codec, self.form)
        trained = train_decoder(
            pairs, EFFORTS[self.budget], seed=self.seed, progress=progress
        )
        images = decode(trained.network, goals)
        return self._closer(client, goals, images) if self.closer_steps else images

    def _closer(self, client: ClientCopy, goals: Tensor, start: Tensor) -> Tensor:
        """Return images moved until the pseudo-client's results fit the goals."""
        near = NEAR if self.form == ADAPTIVE else 0.0
        descent = Descent(self.closer_steps, CLOSER_RATE, TV_WEIGHT, near=near)
        given = _Giving(client, self.form)
        return torch.cat(
            [
                descend(given, goal, some, descent, lambda: None)
                for goal, some in zip(
                    torch.split(goals, CHUNK), torch.split(start, CHUNK), strict=True
                )
            ]
        )

    def _pairs(self, client: PseudoClient) -> Pairs:
        """Return known images with the pseudo-client's results for them."""
        images = self._auxiliary.images.to(self._device)
        given = giving(client, self.form)
        with torch.no_grad():
            codes = torch.cat([given(some) for some in torch.split(images, CHUNK)])
        return Pairs(codes, codes, images)

    def _aligned(self, labels: Tensor, known: LabelledImages) -> LabelledImages:
        """Return known images with the labels of the victim's batch, as far as known.

        An image of a class that the attacker lacks stays as it was drawn.
        """
        images, own = known.images.clone(), known.labels.clone()
        mine = self._auxiliary.labels.to(labels.device)
        for label in torch.unique(labels).tolist():
            rows = (mine == label).nonzero().flatten()
            places = (labels == label).nonzero().flatten()
            if not len(rows):
                continue
            drawn = rows[torch.randint(len(rows), (len(places),), device=rows.device)]
            chosen = drawn.to(self._auxiliary.images.device)
            images[places] = self._auxiliary.images[chosen].to(images)
            own[places] = label
        return LabelledImages(images, own)

    @property
    def _client(self) -> PseudoClient:
        network = self.learners["client"].network
        assert isinstance(network, PseudoClient)  # noqa: S101 (made above)
        return network

    @property
    def _tail(self) -> nn.Module:
        return self.learners["tail"].network

    @property
    def _device(self) -> torch.device:
        return next(self._client.parameters()).device


def unlike(codes: Tensor, others: Tensor) -> Tensor:
    """Return the relative distance of means and spreads of two batches of codes."""
    ours, theirs = (
        torch.cat([rows.mean(dim=0), rows.std(dim=0)])
        for rows in (codes.flatten(1), others.flatten(1))
    )
    return (ours - theirs).square().sum() / theirs.square().sum().clamp_min(1e-12)


class _Giving(nn.Module):
    """A function from images to results in a form of the attack, as a module."""

    def __init__(self, client: ClientCopy, form: str) -> None:
        super().__init__()
        self._given = giving(client, form)

    def forward(self, images: Tensor) -> Tensor:
        """Return activations or codes."""
        return self._given(images)

"""The knowledge of a run's attackers, made from the run itself.

Everything here is a copy: a victim that trains on changes none of it.
"""

import copy
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from lightsplit import seeding
from lightsplit.attacks import Hints, Knowledge, LabelledImages, Pairs, readable
from lightsplit.audits.setup import fresh_head, fresh_parts, server_setup
from lightsplit.audits.victim import Victim, as_images, shuffled
from lightsplit.codecs import Code, Codec
from lightsplit.errors import AuditError
from lightsplit.experiments import Job, pieces
from lightsplit.experiments.cuts import make_codec, make_formats
from lightsplit.formats import AsReceived, WireFormats
from lightsplit.objectives import Objective

CHUNK = 512


class TrueClient(nn.Module):
    """The victim's own head and encoder: images to codes as the server reads them.

    Rounding to a wire format is inside, and gradients pass straight through it.
    """

    def __init__(
        self,
        head: nn.Module,
        codec: Codec,
        formats: WireFormats,
        *,
        objectives: Iterable[Objective] = (),
    ) -> None:
        super().__init__()
        self.head = head
        self.objectives = nn.ModuleList(objectives)
        self.encoder = codec.encoder
        self.received = AsReceived(formats, codec=codec)
        self._codec = codec

    def forward(self, images: Tensor) -> Tensor:
        """Return one readable code per image."""
        return self.encode(self.head(images))

    def encode(self, activations: Tensor) -> Tensor:
        """Return one readable code per activation."""
        code = self.encoder(activations)
        for objective in self.objectives:
            code = objective.disturb(code)  # type: ignore[operator]
        values, side = code
        return readable(self._codec, Code(self.received(values), side))


def gather(victim: Victim, *, auxiliary: int, seed: int) -> Knowledge:
    """Return the knowledge without the victim's weights: images, shapes, a model."""
    others = torch.arange(min(auxiliary, len(victim.others)))
    return Knowledge(
        image_shape=victim.job.experiment.make_task().image_shape,
        classes=victim.job.experiment.make_task().class_count,
        auxiliary=as_images(victim.others, others),
        architecture=partial(fresh_head, victim.job.experiment, seed),
        labels=victim.targets.labels,
        sent_labels=_sent_labels(victim),
        setup=server_setup(victim.job.experiment, victim.job.contract, seed),
        first_client=partial(first_client, victim.job, seed),
    )


def _sent_labels(victim: Victim) -> Tensor:
    """Return the targets' labels as the client sends them: none if it has the tail."""
    rows = victim.rows[:0] if victim.side.has_tail else victim.rows
    if not len(rows):
        return torch.empty(0).long()
    labels: Tensor = victim.job.shares[victim.client].samples.batch(rows)[1]
    return labels


def first_client(job: Job, seed: int, has_secret: bool) -> TrueClient:
    """Return a client as it was before the first step, drawn from the run's seed.

    With a secret, everything that it would have drawn comes from the attacker instead;
    weights from a file are known in any case.
    """
    experiment, shape = job.experiment, job.contract.activation_shape
    is_drawn = has_secret and experiment.task.weights is None
    parts = fresh_parts(experiment, seed) if is_drawn else pieces.load_parts(experiment)
    drawn_for = "attacker" if has_secret else "codec"
    codec = make_codec(experiment, shape, weights_of=drawn_for)
    client = TrueClient(parts.head, codec, make_formats(experiment))
    device = pieces.make_device(experiment.training.device)
    return client.to(device).eval().requires_grad_(False)


def let_oracles_know(knowledge: Knowledge, victim: Victim) -> Knowledge:
    """Return the knowledge with the victim's trained head and true codes added."""
    if knowledge.auxiliary is None:
        raise AuditError("an oracle needs auxiliary images, and this run has none")
    client = true_client(victim)
    pairs = make_pairs(client, knowledge.auxiliary)
    return replace(knowledge, client=client, pairs=pairs)


def true_client(victim: Victim) -> TrueClient:
    """Return a frozen copy of the victim's head and encoder, in evaluation mode."""
    return copied_client(victim).eval()


def copied_client(victim: Victim) -> TrueClient:
    """Return a copy of the victim's head and encoder that cannot be trained."""
    client = TrueClient(
        copy.deepcopy(victim.side.modules["head"]),
        pieces.private_codec(victim.side.codec),
        victim.job.trainer.server.wire.formats,
        objectives=copy.deepcopy([o for o, weight in victim.side.objectives if weight]),
    )
    return client.requires_grad_(False)


def make_pairs(client: TrueClient, known: LabelledImages) -> Pairs:
    """Return the true codes and activations of known images."""
    codes, activations = [], []
    with torch.no_grad(), seeding.scope(0, "pairs"):  # an objective may add noise
        for images in torch.split(known.images, CHUNK):
            activations.append(client.head(images))
            codes.append(client.encode(activations[-1]))
    return Pairs(torch.cat(codes), torch.cat(activations), known.images)


def hinted(knowledge: Knowledge, labels: Tensor, *, seed: int) -> Knowledge:
    """Return the knowledge with some of the recorded samples' labels added.

    One sample of each class for attacks that need little, and half of all samples for
    attacks that learn from them.
    """
    rows = shuffled(torch.arange(len(labels)), seed, "known rows")[: len(labels) // 2]
    return replace(
        knowledge,
        hints=first_of_each_class(labels),
        known_rows=Hints(rows, labels[rows]),
    )


def first_of_each_class(labels: Tensor) -> Hints:
    """Return the first row of every class that occurs."""
    rows = [int((labels == label).nonzero()[0]) for label in torch.unique(labels)]
    return Hints(torch.tensor(rows), labels[rows])

"""What the attackers of a run may know, made from the run itself.

Everything here is a copy: what a victim does afterwards changes none of it.
"""

import copy
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from lightsplit.attacks import Hints, Knowledge, LabelledImages, Pairs, readable
from lightsplit.audits.setup import fresh_head, server_setup
from lightsplit.audits.victim import Victim, as_images
from lightsplit.codecs import Code, Codec
from lightsplit.errors import AuditError
from lightsplit.experiments import pieces
from lightsplit.formats import AsReceived, WireFormats

CHUNK = 512


class TrueClient(nn.Module):
    """The victim's own head and encoder: images to codes as the server reads them.

    Rounding to a wire format is inside, and gradients pass straight through it.
    """

    def __init__(self, head: nn.Module, codec: Codec, formats: WireFormats) -> None:
        super().__init__()
        self.head = head
        self.encoder = codec.encoder
        self.received = AsReceived(formats)
        self._codec = codec

    def forward(self, images: Tensor) -> Tensor:
        """Return one readable code per image."""
        return self.encode(self.head(images))

    def encode(self, activations: Tensor) -> Tensor:
        """Return one readable code per activation."""
        values, side = self.encoder(activations)
        return readable(self._codec, Code(self.received(values), side))


def gather(victim: Victim, *, auxiliary: int, seed: int) -> Knowledge:
    """Return what is known without the victim's weights: images, shapes, a model."""
    others = torch.arange(min(auxiliary, len(victim.others)))
    return Knowledge(
        image_shape=victim.job.dataset.train.shape,
        classes=victim.job.dataset.classes,
        auxiliary=as_images(victim.others, others),
        architecture=partial(fresh_head, victim.job.experiment, seed),
        labels=victim.targets.labels,
        sent_labels=victim.targets.labels[: 0 if victim.side.has_tail else None],
        setup=server_setup(victim.job.experiment, victim.job.contract, seed),
    )


def let_oracles_know(knowledge: Knowledge, victim: Victim) -> Knowledge:
    """Return the same with the victim's trained head, and true codes made by it."""
    if knowledge.auxiliary is None:
        raise AuditError("an oracle needs auxiliary images")
    client = true_client(victim)
    pairs = make_pairs(client, knowledge.auxiliary)
    return replace(knowledge, client=client, pairs=pairs)


def true_client(victim: Victim) -> TrueClient:
    """Return a frozen copy of the victim's head and encoder, in evaluation mode."""
    codec = pieces.private_codec(victim.side.codec)
    head = copy.deepcopy(victim.side.modules["head"])
    client = TrueClient(head, codec, victim.job.trainer.server.formats)
    return client.eval().requires_grad_(False)


def make_pairs(client: TrueClient, known: LabelledImages) -> Pairs:
    """Return the true codes and activations of known images."""
    codes, activations = [], []
    with torch.no_grad():
        for images in torch.split(known.images, CHUNK):
            activations.append(client.head(images))
            codes.append(client.encode(activations[-1]))
    return Pairs(torch.cat(codes), torch.cat(activations), known.images)


def first_of_each_class(labels: Tensor) -> Hints:
    """Return the first row of every class that occurs."""
    rows = [int((labels == label).nonzero()[0]) for label in torch.unique(labels)]
    return Hints(torch.tensor(rows), labels[rows])

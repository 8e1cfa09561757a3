"""The knowledge of a run's attackers, made from the run itself.

Everything here is a copy: a victim that trains on changes none of it.
"""

import copy
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from lightsplit import seeding
from lightsplit.attacks import (
    ClientCopy,
    Hints,
    Knowledge,
    LabelledImages,
    Pairs,
    readable,
)
from lightsplit.audits.setup import fresh_head, fresh_parts, server_setup
from lightsplit.audits.victim import Known, Victim, as_known, shuffled
from lightsplit.codecs import Code, Codec
from lightsplit.errors import AuditError
from lightsplit.experiments import Experiment, pieces
from lightsplit.experiments.cuts import make_codec, make_formats
from lightsplit.formats import AsReceived, WireFormats
from lightsplit.nesting import batches_of
from lightsplit.objectives import Objective, cover
from lightsplit.protocol import Contract
from lightsplit.runtime import ClientSide
from lightsplit.splitting import call
from lightsplit.tasks import Task

CHUNK = 512


class TrueClient(ClientCopy):
    """The victim's own head and encoder: samples to codes as the server reads them.

    Rounding to a wire format is inside, and gradients pass straight through it.
    """

    def __init__(
        self,
        head: nn.Module,
        codec: Codec,
        formats: WireFormats,
        *,
        as_inputs: Callable[[Tensor], Any],
        objectives: Iterable[Objective] = (),
    ) -> None:
        super().__init__()
        self.head = head
        self.objectives = nn.ModuleList(objectives)
        self.encoder = codec.encoder
        self.received = AsReceived(formats, codec=codec)
        self._codec = codec
        self._as_inputs = as_inputs

    @property
    def is_sample_wise(self) -> bool:
        """Return whether the code of a sample depends on that sample alone."""
        return self._codec.is_sample_wise

    def forward(self, samples: Tensor) -> Tensor:
        """Return one readable code per sample, as an attacker has them."""
        return self.encode(self.activations(samples))

    def activations(self, samples: Tensor) -> Tensor:
        """Return the activations of samples."""
        return self.activate(self._as_inputs(samples))

    def activate(self, inputs: Any) -> Tensor:
        """Return the activations of the model's own inputs."""
        activations: Tensor = call(self.head, inputs)
        return activations

    def encode(self, activations: Tensor) -> Tensor:
        """Return one readable code per activation."""
        covered, _ = cover(cast(Iterable[Objective], self.objectives), activations)
        code = self.encoder(covered)
        for objective in self.objectives:
            code = objective.disturb(code)  # type: ignore[operator]
        values, side = code
        return readable(self._codec, Code(self.received(values), side))


def gather(victim: Victim, *, auxiliary: int, seed: int) -> Knowledge:
    """Return the knowledge without the victim's weights: images, shapes, a model."""
    others = torch.arange(min(auxiliary, len(victim.others)))
    _, sent_labels = victim.job.shares[victim.client].samples.batch(victim.rows)
    return public_knowledge(
        victim.job.experiment,
        victim.job.contract,
        as_known(victim.truth, *victim.others.batch(others)),
        victim.targets,
        sent_labels=sent_labels,
        seed=seed,
    )


def public_knowledge(
    experiment: Experiment,
    contract: Contract,
    auxiliary: LabelledImages,
    targets: LabelledImages,
    *,
    sent_labels: Any,
    seed: int,
) -> Knowledge:
    """Return the knowledge about a run that needs none of the victim's weights.

    ``sent_labels`` are the targets' labels that the client trains on. The server gets
    them in the vanilla topology alone.
    """
    task = experiment.make_task()
    has_classes = are_classes(task, targets.labels)
    is_vanilla = contract.topology == "vanilla"
    no_classes = "the labels of this task are not classes"
    return Knowledge(
        image_shape=task.find_truth().shape,
        classes=task.classes if has_classes else None,
        auxiliary=auxiliary,
        architecture=partial(fresh_head, experiment, seed),
        labels=targets.labels if has_classes else None,
        sent_labels=sent_labels
        if has_classes and is_vanilla
        else torch.empty(0).long(),
        setup=server_setup(experiment, contract, seed),
        first_client=partial(first_client, experiment, contract, seed),
        reasons={} if has_classes else dict.fromkeys(("classes", "labels"), no_classes),
    )


def are_classes(task: Task, labels: Any) -> bool:
    """Return whether labels are one class per sample."""
    if task.classes is None or not isinstance(labels, Tensor):
        return False
    return labels.ndim == 1 and not labels.is_floating_point()


def first_client(
    experiment: Experiment, contract: Contract, seed: int, has_secret: bool
) -> TrueClient:
    """Return a client as it was before the first step, drawn from the run's seed.

    With a secret, everything that it would have drawn comes from the attacker instead;
    weights from a file are known in any case.
    """
    shape = contract.activation_shape
    is_drawn = has_secret and experiment.task.weights is None
    parts = fresh_parts(experiment, seed) if is_drawn else pieces.load_parts(experiment)
    drawn_for = "attacker" if has_secret else "codec"
    codec = make_codec(experiment, shape, weights_of=drawn_for)
    client = TrueClient(
        parts.head,
        codec,
        make_formats(experiment),
        as_inputs=experiment.make_task().find_truth().inputs,
    )
    device = pieces.make_device(experiment.training.device)
    return client.to(device).eval().requires_grad_(False)


def let_oracles_know(knowledge: Knowledge, victim: Victim) -> Knowledge:
    """Return the knowledge with the victim's trained head and true codes added."""
    if knowledge.auxiliary is None:
        raise AuditError("an oracle needs auxiliary images, and this run has none")
    client = true_client(victim.side, victim.job.experiment)
    experiment = victim.job.experiment
    pairs = make_pairs(
        client,
        cast(Known, knowledge.auxiliary),
        victim.truth.kind,
        chunk=CHUNK if client.is_sample_wise else experiment.training.batch_size,
    )
    return replace(knowledge, client=client, pairs=pairs)


def true_client(side: ClientSide, experiment: Experiment) -> TrueClient:
    """Return a frozen copy of a client's head and encoder, in evaluation mode."""
    return copied_client(side, experiment).eval()


def copied_client(side: ClientSide, experiment: Experiment) -> TrueClient:
    """Return a copy of a client's head and encoder that cannot be trained."""
    client = TrueClient(
        copy.deepcopy(side.modules["head"]),
        pieces.private_codec(side.codec),
        make_formats(experiment),
        as_inputs=experiment.make_task().find_truth().inputs,
        objectives=copy.deepcopy([o for o, weight in side.objectives if weight]),
    )
    return client.requires_grad_(False)


def make_pairs(
    client: TrueClient, known: Known, kind: str, *, chunk: int = CHUNK
) -> Pairs:
    """Return the true codes and activations of known samples.

    A codec that mixes samples encodes ``chunk`` of them at a time; each pair is then a
    sample and the server's decoding of it among these others.
    """
    codes, activations = [], []
    with torch.no_grad(), seeding.scope(0, "pairs"):  # an objective may add noise
        for inputs in batches_of(known.inputs, chunk):
            activations.append(client.activate(inputs))
            codes.append(client.encode(activations[-1]))
    return Pairs(torch.cat(codes), torch.cat(activations), known.images, kind)


def give_hints(knowledge: Knowledge, labels: Any, *, seed: int) -> Knowledge:
    """Return the knowledge with some of the recorded samples' labels added.

    One sample of each class for attacks that need little, and half of all samples for
    attacks that learn from them. Labels that are not classes give no hints.
    """
    if knowledge.classes is None:
        reason = knowledge.reasons["classes"]
        reasons = {**knowledge.reasons, "hints": reason, "known_rows": reason}
        return replace(knowledge, reasons=reasons)
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

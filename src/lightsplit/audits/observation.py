"""The view of a finished run's server while the victim predicts and trains on.

Two kinds of messages are recorded:

    prediction   the targets' codes, every module in evaluation mode
    training     all four messages of further steps on the victim's own images

Reconstruction works on the first, label inference on the second. In between, the victim
predicts a crowd of samples, half of them those of the steps, which is recorded
separately for membership inference. The further steps change the victim in memory but
not its run folder.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lightsplit.attacks import Crowd, Exchange, ServerView, Snapshot
from lightsplit.audits.crowd import gather_crowd
from lightsplit.audits.victim import Victim, shuffled
from lightsplit.codecs import Codec
from lightsplit.experiments import pieces
from lightsplit.experiments.cuts import make_codec
from lightsplit.nesting import batches_of
from lightsplit.protocol import Wire
from lightsplit.runtime import OnceClient
from lightsplit.transports import Recorder, through


@dataclass(frozen=True, eq=False)
class Observation:
    """The server's view, and the true labels of its training rows."""

    view: ServerView
    labels: Any
    crowd: Crowd | None
    members: Tensor


def observe(
    victim: Victim, *, training_samples: int, seed: int, crowd_samples: int = 0
) -> Observation:
    """Let the victim send its targets and train on; return its server's view.

    Args:
        victim: the run under attack.
        training_samples: in further steps.
        seed: of their choice.
        crowd_samples: the largest number of members in a crowd, and of others.
    """
    job, recorder = victim.job, Recorder()
    job.trainer.server.side.normalisation.switch_to(victim.client)
    modules = job.trainer.server.side.modules
    weights = {name: tensor.clone() for name, tensor in modules.state_dict().items()}
    wire = public_wire(victim)
    victim.actor.send = through(recorder, job.trainer.server.handle)
    for inputs in batches_of(victim.targets.inputs, job.experiment.training.batch_size):
        victim.actor.predict(inputs)
    rows = _training_rows(victim, training_samples, seed)
    crowd, members = gather_crowd(victim, rows, wire, most=crowd_samples, seed=seed)
    victim.actor.send = through(recorder, job.trainer.server.handle)
    victim.actor.averaging = None  # nobody else is in these steps of a parallel run
    labels = _train(victim, rows)
    view = ServerView(
        contract=job.contract,
        wire=wire,
        exchanges=tuple(Exchange(*exchange) for exchange in recorder.exchanges),
        weights=(Snapshot(job.trainer.progress.steps, weights),),
    )
    return Observation(view, labels, crowd, members)


def public_wire(victim: Victim) -> Wire:
    """Return the wire as the victim's server knows it."""
    job = victim.job
    formats = job.trainer.server.wire.formats
    return Wire(public_codec(victim), job.output_codec, formats)


def public_codec(victim: Victim) -> Codec:
    """Return the codec as its server knows it, with fresh weights for the encoder."""
    job = victim.job
    codec = make_codec(
        job.experiment, job.contract.activation_shape, weights_of="attacker"
    )
    job.trainer.server.side.normalisation.switch_to(victim.client)
    trained = job.trainer.server.side.modules["decoder"]
    codec.decoder.load_state_dict(trained.state_dict())
    codec.encoder.to(pieces.make_device(job.experiment.training.device))
    codec.decoder.to(pieces.make_device(job.experiment.training.device))
    return codec


def _training_rows(victim: Victim, samples: int, seed: int) -> list[Tensor]:
    """Return whole batches only, because a single sample cannot be normalised."""
    held = victim.job.held[victim.client]
    size = min(victim.job.experiment.training.batch_size, len(held))
    rows = shuffled(held, seed, "steps")[: max(samples, size)]
    return list(torch.split(rows[: len(rows) // size * size], size))


def _train(victim: Victim, batches: list[Tensor]) -> Any:
    """Train on the batches and return their true labels."""
    held = victim.job.held[victim.client]
    drawn = victim.job.shares[victim.client].samples  # the labels that it trains on
    labels = []
    for batch in batches:
        inputs, told = drawn.batch(batch)
        if isinstance(victim.actor, OnceClient):  # its steps name samples
            numbers = (batch[:, None] == held[None, :]).int().argmax(1)
            victim.actor.recall_step(numbers, told)
        else:
            victim.actor.step(inputs, told)
        labels.append(victim.job.dataset.train.batch(batch)[1])
    return joined(labels)


def joined(labels: list[Any]) -> Any:
    """Return the labels of several batches as one tensor; others stay a list."""
    if all(isinstance(one, Tensor) for one in labels):
        return torch.cat(labels)
    return labels

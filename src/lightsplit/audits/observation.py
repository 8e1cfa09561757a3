"""What the server of a finished run sees when the victim goes on.

Two kinds of messages are recorded:

    prediction   the targets' codes, every module in evaluation mode
    training     all four messages of further steps on the victim's own images

The first are what reconstruction works on, the second what label inference needs. The
further steps change the victim in memory; its run folder is not touched.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from lightsplit.attacks import Exchange, ServerView, Snapshot
from lightsplit.audits.victim import Victim, as_images, shuffled
from lightsplit.codecs import Codec
from lightsplit.experiments import pieces
from lightsplit.experiments.cuts import make_codec
from lightsplit.transports import Recorder, through


@dataclass(frozen=True, eq=False)
class Observation:
    """The server's view, and the labels of its training rows to score it by."""

    view: ServerView
    labels: Tensor


def observe(victim: Victim, *, training_samples: int, seed: int) -> Observation:
    """Let the victim send its targets and train on, and return what its server saw."""
    job, recorder = victim.job, Recorder()
    modules = job.trainer.server.side.modules
    weights = {name: tensor.clone() for name, tensor in modules.state_dict().items()}
    codec = public_codec(victim)
    victim.actor.send = through(recorder, job.trainer.server.handle)
    for images in torch.split(victim.targets.images, job.experiment.batch_size):
        victim.actor.predict(images)
    labels = _train(victim, training_samples, seed)
    view = ServerView(
        contract=job.contract,
        codec=codec,
        exchanges=tuple(Exchange(*exchange) for exchange in recorder.exchanges),
        weights=(Snapshot(job.trainer.progress.steps, weights),),
        output_codec=job.output_codec,
        formats=job.trainer.server.formats,
    )
    return Observation(view, labels)


def public_codec(victim: Victim) -> Codec:
    """Return the codec as its server knows it: an encoder's weights are drawn anew."""
    job = victim.job
    codec = make_codec(
        job.experiment, job.contract.activation_shape, weights_of="attacker"
    )
    trained = job.trainer.server.side.modules["decoder"]
    codec.decoder.load_state_dict(trained.state_dict())
    codec.encoder.to(pieces.make_device(job.experiment.device))
    codec.decoder.to(pieces.make_device(job.experiment.device))
    return codec


def _train(victim: Victim, samples: int, seed: int) -> Tensor:
    """Take whole batches only: a single sample cannot be normalised."""
    held = victim.job.held[victim.client]
    size = min(victim.job.experiment.batch_size, len(held))
    rows = shuffled(held, seed, "steps")[: max(samples, size)]
    labels = []
    for batch in torch.split(rows[: len(rows) // size * size], size):
        data = as_images(victim.job.dataset.train, batch)
        victim.actor.step(data.images, data.labels)
        labels.append(data.labels)
    return torch.cat(labels)

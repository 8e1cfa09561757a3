"""A crowd for membership inference: samples that were trained on, and others.

    samples of the further steps ─┐
                                  ├─► predicted by the trained client
    test samples ─────────────────┘

Both groups have the same size, and members come first; no attack may use the order. The
steps come later, so a server that keeps their codes has those of every member; the
client has trained on these samples before, in every epoch.
"""

import torch
from torch import Tensor

from lightsplit.attacks import Crowd, Exchange, ServerView
from lightsplit.audits.victim import Victim, as_known, shuffled
from lightsplit.nesting import batches_of
from lightsplit.protocol import Wire
from lightsplit.transports import Recorder, through

FEWEST = 20  # in each group; smaller ones say nothing


def gather_crowd(
    victim: Victim, batches: list[Tensor], wire: Wire, *, most: int, seed: int
) -> tuple[Crowd | None, Tensor]:
    """Let the victim predict a crowd; return it and which samples are members.

    There is no crowd if the codec mixes samples, or if either group is too small.
    """
    rows, test = torch.cat(batches), victim.job.dataset.test
    count = min(most, len(rows), len(test))
    nobody = torch.empty(0).bool()
    if count < FEWEST or not wire.codec.is_sample_wise:
        return None, nobody
    others = shuffled(torch.arange(len(test)), seed, "outsiders")[:count]
    known = [
        as_known(victim.truth, *victim.job.dataset.train.batch(rows[:count])),
        as_known(victim.truth, *test.batch(others)),
    ]
    recorder = Recorder()
    victim.actor.send = through(recorder, victim.job.trainer.server.handle)
    size = victim.job.experiment.training.batch_size
    for part in known:
        for inputs in batches_of(part.inputs, size):
            victim.actor.predict(inputs)
    exchanges = tuple(Exchange(*exchange) for exchange in recorder.exchanges)
    members = torch.arange(2 * count) < count
    told = shuffled(torch.arange(2 * count), seed, "known members")[:count]
    crowd = Crowd(
        view=ServerView(victim.job.contract, wire, exchanges),
        samples=torch.cat([part.images for part in known]),
        known_rows=told,
        known_members=members[told],
    )
    return crowd, members

"""What attacks that learn in training will cost, measured without any data.

    random images ─► client ──► the attack looks on ──► server

A few steps are taken with the attack beside them, on raw codes: what a codec adds is
small against the attacker's networks.
"""

import time
from functools import lru_cache, partial

import torch

from lightsplit.attacks import (
    Attack,
    Exchange,
    Knowledge,
    LabelledImages,
    OnlineReconstruction,
)
from lightsplit.audits import AuditOptions
from lightsplit.audits.attacking import prepare
from lightsplit.audits.plan import expected
from lightsplit.audits.setup import fresh_head, server_setup
from lightsplit.experiments import Experiment, make_experiment, pieces
from lightsplit.experiments.config import FACTS
from lightsplit.experiments.cuts import Cuts, make_cuts
from lightsplit.protocol import Reply, Request
from lightsplit.runtime import Client
from lightsplit.transports import Send, through

_BATCH = 8
_REPEATS = 2


def learning_seconds(
    experiment: Experiment, options: AuditOptions, *, steps: int
) -> float:
    """Return the time of attacks that learn beside so many steps of all clients."""
    plain = _plain(experiment)
    own = steps / experiment.clients
    return sum(
        _seconds_per_sample(plain, kind, form)
        * min(own, kind.steps.get(options.budget, own))
        * experiment.batch_size
        for kind, form in expected(options, during=True)
        if issubclass(kind, OnlineReconstruction)
    )


def _plain(experiment: Experiment) -> Experiment:
    """Return a run of which the cost of a step depends on nothing else."""
    kept = ("dataset", "model", "cut", "topology")
    settings = {name: getattr(experiment, name) for name in kept}
    return make_experiment({**settings, "codec": "raw", "clients": 1})


@lru_cache(maxsize=64)
def _seconds_per_sample(experiment: Experiment, kind: type[Attack], form: str) -> float:
    shape, classes = FACTS[experiment.dataset]
    batch = LabelledImages(torch.rand(_BATCH, *shape), torch.arange(_BATCH) % classes)
    cuts = make_cuts(experiment, pieces.load_parts(experiment))
    known = Knowledge(
        image_shape=shape,
        classes=classes,
        auxiliary=batch,
        architecture=partial(fresh_head, experiment, 0),
        setup=server_setup(experiment, cuts.contract, 0),
    )
    client = _watched(experiment, cuts, prepare(kind, form, known, AuditOptions()))
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        client.step(batch.images, batch.labels)
        times.append(time.perf_counter() - began)
    return min(times) / _BATCH


def _watched(experiment: Experiment, cuts: Cuts, attack: Attack) -> Client:
    """Return a client whose every exchange the attack learns from."""
    server = pieces.make_server(experiment, cuts)

    def show(request: Request, call_next: Send) -> Reply:
        reply = call_next(request)
        if isinstance(attack, OnlineReconstruction):
            weights = server.side.modules.state_dict()
            attack.observe(Exchange(request, reply), weights)
        return reply

    side = pieces.make_client_side(experiment, cuts)
    return pieces.make_client(experiment, side, through(show, server.handle))

"""The cost of attacks that learn during training, measured without any data.

    random images ─► client ──► the attack looks on ──► server

The measurement takes a few steps with the attack watching, on raw codes: the cost of a
codec is small beside that of the attacker's networks. The class of an attack states how
many steps it learns from.
"""

import copy
import time
from functools import lru_cache, partial
from typing import cast

import torch

from lightsplit.attacks import Exchange, Knowledge, LabelledImages, Linked, Observes
from lightsplit.audits import AuditOptions
from lightsplit.audits.attacking import prepare
from lightsplit.audits.gathering import TrueClient
from lightsplit.audits.plan import Planned, expected
from lightsplit.audits.setup import fresh_head, server_setup
from lightsplit.experiments import Experiment, make_experiment, pieces
from lightsplit.experiments.cuts import Cuts, make_cuts, make_formats
from lightsplit.protocol import Reply, Request
from lightsplit.runtime import Client
from lightsplit.transports import Send, through

_BATCH = 8
_REPEATS = 2


def learning_seconds(
    experiment: Experiment, options: AuditOptions, *, steps: int
) -> float:
    """Return the seconds that the attacks spend on learning during the steps."""
    plain = _plain(experiment)
    own = steps / experiment.owners.clients
    return sum(
        _seconds_per_sample(plain, one)
        * min(own, one.attack.steps.get(options.budget, own))
        * experiment.training.batch_size
        for one in expected(options, during=True)
        if issubclass(one.attack, Observes)
    )


def _plain(experiment: Experiment) -> Experiment:
    """Return the run reduced to the settings that determine the cost of a step."""
    tables = experiment.tables()
    kept = {name: tables[name] for name in ("task", "split")}
    raw = {"codec": {"name": "raw"}, "owners": {"clients": 1}}
    return make_experiment({**kept, **raw})


@lru_cache(maxsize=64)
def _seconds_per_sample(experiment: Experiment, planned: Planned) -> float:
    task = experiment.make_task()
    shape, classes = task.image_shape, task.class_count
    batch = LabelledImages(torch.rand(_BATCH, *shape), torch.arange(_BATCH) % classes)
    cuts = make_cuts(experiment, pieces.load_parts(experiment))
    known = Knowledge(
        image_shape=shape,
        classes=classes,
        auxiliary=batch,
        architecture=partial(fresh_head, experiment, 0),
        setup=server_setup(experiment, cuts.contract, 0),
        linked=_linked(experiment, cuts),
    )
    attack = cast(Observes, prepare(planned, known, AuditOptions()))
    client = _watched(experiment, cuts, attack)
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        client.step(batch.images, batch.labels)
        times.append(time.perf_counter() - began)
    return min(times) / _BATCH


def _linked(experiment: Experiment, cuts: Cuts) -> Linked:
    """Return a victim that sends all its images in every step."""
    client = TrueClient(
        cuts.parts.head,
        cuts.codec,
        make_formats(experiment),
        as_inputs=experiment.make_task().find_truth().inputs,
    )
    return Linked(
        steps_per_pass=1,
        passes=_REPEATS,
        images=_BATCH,
        targets_of=lambda _step: torch.arange(_BATCH),
        client_now=lambda: copy.deepcopy(client).train(),
    )


def _watched(experiment: Experiment, cuts: Cuts, attack: Observes) -> Client:
    """Return a client whose every exchange is shown to the attack."""
    server = pieces.make_server(experiment, cuts)

    def show(request: Request, call_next: Send) -> Reply:
        reply = call_next(request)
        weights = server.side.modules.state_dict()
        attack.observe(Exchange(request, reply), weights)
        return reply

    side = pieces.make_client_side(experiment, cuts)
    return pieces.make_client(experiment, side, through(show, server.handle))

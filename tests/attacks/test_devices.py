"""An iteration on another device touches no tensor elsewhere: torch would refuse it.

The device is torch's `meta`, which every machine has; it computes shapes only.
"""

from dataclasses import replace

import pytest
import torch

from lightsplit.attacks import ATTACKS, equip, fora_training, sdar_training
from lightsplit.attacks.steps import Seen
from lightsplit.codecs import Code

META = torch.device("meta")
SETTINGS = {
    "sdar": sdar_training.Settings(width=16),
    "fora": fora_training.Settings(width=8),
}


def moved(run, name, form):
    """Return the attack on the other device, and a batch of the victim's there."""
    setup = replace(run.knowledge.setup, device=META)
    known = replace(run.knowledge, setup=setup)
    attack = equip(ATTACKS.get(name), known, form=form, settings=SETTINGS[name])
    for learner in attack.learners.values():  # fused Adam is for real devices
        learner.optimizer = torch.optim.Adam(learner.weights)
    client, _ = run.sides()
    code = client.encode(run.targets.images[:32])
    there = Code(code.values.detach().to(META), tuple(s.to(META) for s in code.side))
    is_vanilla = run.job.experiment.split.topology == "vanilla"
    return attack, Seen(there, run.targets.labels[:32].to(META) if is_vanilla else None)


@pytest.mark.slow
@pytest.mark.parametrize("topology", ["u", "vanilla"])
@pytest.mark.parametrize("form", ["published", "adaptive"])
@pytest.mark.parametrize("codec", ["raw", "lightsplit-f", "learned-1x1"])
@pytest.mark.parametrize("name", ["sdar", "fora"])
def test_every_tensor_of_an_iteration_is_on_the_device(
    in_training, name, codec, form, topology
):
    ratio = 1.0 if codec == "raw" else 8.0
    run = in_training(codec=codec, ratio=ratio, topology=topology, cut="l2")
    attack, seen = moved(run, name, form)
    attack.learn(seen, attack._batches.next(32))
    assert attack.decode(seen).device == META
    for learner in attack.learners.values():
        assert {one.device for one in learner.network.state_dict().values()} == {META}

"""What an attack finds does not depend on what was drawn before it."""

import pytest
import torch

from lightsplit.attacks.decoder_training import Effort
from lightsplit.attacks.pcat import EFFORTS
from lightsplit.audits import AuditOptions, audit, audit_during

pytestmark = pytest.mark.slow

NOISE = {"codec": "raw", "objective": "noise"}
LITTLE = Effort(60, steps=5, most_steps=5, width=8, blocks=1, lr=1e-3)
CHANNEL = {"codec": "bottlenet", "channel": "awgn"}
CLIENTS_ARE_RUN = [  # the copy of the client adds the objective's noise
    "whitebox:steps=5,most_steps=5",
    "rmle:steps=5",
    "prior-search:prior_steps=5,steps=5",
    "refined-decoder:steps=5,most_steps=5,width=4,closer_steps=5,learnt_steps=2",
]


def figures(entries):
    return [(one.get("fingerprint"), one["metrics"]) for one in entries]


def options(attack):
    return AuditOptions(
        attacks=(attack,), form="adaptive", images=6, auxiliary=60, score_every=8
    )


@pytest.mark.parametrize("attack", CLIENTS_ARE_RUN)
def test_an_audit_finds_the_same_after_other_draws(own_run, quiet, attack):
    found = []
    for number in range(2):
        torch.manual_seed(number)
        found.append(figures(audit(own_run(**NOISE), options(attack), watch=quiet)))
    assert found[0] == found[1]


def test_so_does_one_during_training_whose_pseudo_client_draws(
    own_run, quiet, monkeypatch
):
    monkeypatch.setitem(EFFORTS, "quick", LITTLE)
    attack = "pcat:closer_steps=5,width=4"  # its encoder plays the channel
    found = []
    for number in range(2):
        folder = own_run(**CHANNEL)
        torch.manual_seed(number)
        entries = audit_during(folder, options(attack), watch=quiet)
        curves = sorted(path.read_text() for path in folder.path.glob("**/*.jsonl"))
        found.append((figures(entries), curves))
    assert found[0] == found[1]

"""Who has the gradients of a head's weights, and whether they are the true ones."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from lightsplit.audits import AuditOptions, audit
from lightsplit.audits.gathering import gather
from lightsplit.audits.head_gradients import let_accomplices_know
from lightsplit.errors import AuditError

pytestmark = pytest.mark.slow


def known(victim):
    return let_accomplices_know(gather(victim, auxiliary=20, seed=0), victim)


@pytest.mark.parametrize("topology", ["u", "vanilla"])
def test_they_are_those_of_the_whole_model(victim_of, topology):
    victim = victim_of(images=3, topology=topology)
    steps = known(victim).head_steps()
    head = victim.side.modules["head"].eval()
    server = victim.job.trainer.server.side
    server.modules.eval()
    image, label = victim.targets.images[1:2], victim.targets.labels[1:2]
    code = victim.side.encode(image)
    output = server.forward(code).values
    logits = output if topology == "vanilla" else victim.side.modules["tail"](output)
    cross_entropy(logits, label).backward()
    for name, weight in head.named_parameters():
        torch.testing.assert_close(steps.gradients[f"head.{name}"][1], weight.grad)
    assert (steps.labels is None) == (topology == "u")
    assert (steps.tail is None) == (topology == "vanilla")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"heads": "private"}, "heads are private: the gradient at the cut is all"),
        ({"clients": 1}, "no other client ever holds the head"),
    ],
)
def test_where_nobody_has_them_the_attack_is_refused_with_the_reason(
    own_run, quiet, settings, reason
):
    options = AuditOptions(attacks=("dlg",), images=2, auxiliary=20, form="adaptive")
    with pytest.raises(AuditError, match=reason):
        audit(own_run(**settings), options, watch=quiet)


def test_the_head_is_the_one_that_made_the_codes(victim_of):
    victim = victim_of(images=2)
    steps = known(victim).head_steps
    first = steps().at_the_code
    with torch.no_grad():
        for weight in victim.side.modules.parameters():
            weight.add_(1.0)
        for weight in victim.job.trainer.server.side.modules.parameters():
            weight.add_(1.0)
    torch.testing.assert_close(steps().at_the_code, first)


def test_an_audit_scores_what_they_give_away(own_run, quiet):
    options = AuditOptions(
        attacks=("inverting-gradients:steps=2", "idlg:steps=1"),
        images=2,
        auxiliary=20,
        form="adaptive",
    )
    entries = audit(own_run(), options, watch=quiet)
    named = {entry["attack"] for entry in entries if entry["kind"] == "published"}
    assert named == {"idlg", "inverting-gradients"}

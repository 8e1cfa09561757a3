"""Membership and properties in an audit: recorded, shown, and on no ladder."""

import pytest
import torch

from lightsplit.audits import AuditOptions, audit
from lightsplit.audits.observation import observe
from lightsplit.cli.audit import tables
from lightsplit.errors import AuditError
from lightsplit.reports.audits import audit_tables
from lightsplit.reports.groups import group_runs
from lightsplit.reports.runs import find_runs

pytestmark = pytest.mark.slow

NAMES = (
    "membership-clusters",
    "membership-known",
    "membership-match",
    "property-classifier:property=contrast",
)
OPTIONS = AuditOptions(attacks=NAMES, images=30, auxiliary=100)


@pytest.mark.parametrize("topology", ["u", "vanilla"])
def test_every_fact_has_an_entry_with_its_scores(own_run, quiet, topology):
    folder = own_run(topology=topology)
    audit(folder, OPTIONS, watch=quiet)
    entries = [
        entry
        for entry in folder.read_record()["audit"]
        if entry["kind"] in ("membership", "property")
    ]
    assert {(entry["attack"], entry["message"]) for entry in entries} == {
        ("membership-clusters", "code"),
        ("membership-clusters", "output"),
        ("membership-known", "code"),
        ("membership-known", "output"),
        ("membership-known", "samples"),
        ("membership-match", "code"),
        ("property-classifier", "targets"),
    }
    for entry in entries:
        assert list(entry["metrics"]) == ["auc", "balanced_accuracy", "tpr_at_1_fpr"]
        assert entry["chance"] == 0.5
    assert all(
        not set(group["attacks"]) & {"membership-match", "property-classifier"}
        for group in folder.read_record()["leakage"]
    )
    printed = tables(entries)
    assert printed[0].row_count == len(entries)


def test_a_report_has_a_table_of_them(own_run, quiet):
    folder = own_run()
    audit(folder, OPTIONS, watch=quiet)
    runs, _ = find_runs([folder.path])
    made = {table.name: table for table in audit_tables(group_runs(runs))}
    assert len(made["facts"].rows) == 7
    assert "found at 1 % false" in made["facts"].columns


def test_members_are_the_samples_of_the_steps_and_the_others_of_the_test_set(
    victim_of,
):
    victim = victim_of()
    seen = observe(victim, training_samples=40, seed=0, crowd_samples=25)
    samples, members = seen.crowd.samples, seen.members
    assert int(members.sum()) == 25 == int((~members).sum())
    own, _ = victim.job.dataset.train.batch(victim.job.held[victim.client])
    test, _ = victim.job.dataset.test.batch(torch.arange(len(victim.job.dataset.test)))
    for sample, is_member in zip(samples, members, strict=True):
        pool = own if is_member else test
        assert (pool == sample).flatten(1).all(dim=1).any()


def test_a_crowd_leaves_the_codes_and_gradients_of_an_audit_as_they_were(victim_of):
    views = [
        observe(victim_of(), training_samples=40, seed=0, crowd_samples=most).view
        for most in (0, 25)
    ]
    torch.testing.assert_close(views[0].codes, views[1].codes, rtol=0, atol=0)
    for kind in views[0].recorded_kinds:
        one, other = (view.training_messages(kind) for view in views)
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_a_crowd_that_is_too_small_is_refused_by_name(own_run, quiet):
    few = AuditOptions(attacks=("membership-known",), images=4, auxiliary=100)
    with pytest.raises(AuditError, match="membership-known needs to know crowd"):
        audit(own_run(), few, watch=quiet)

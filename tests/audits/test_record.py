import pytest

from lightsplit.audits.plan import AuditOptions
from lightsplit.audits.record import is_audited, keep, leakage


def entry(attack="decoder", *, kind="oracle", budget="quick", **means):
    return {
        "attack": attack,
        "form": "",
        "kind": kind,
        "budget": budget,
        "client": 0,
        "seed": 0,
        "metrics": {name: {"mean": mean} for name, mean in means.items()},
    }


def test_entries_are_added_and_nothing_else_is_lost(own_run):
    folder = own_run()
    before = folder.read_record()
    keep(folder, entry("linear", ssim=0.2))
    keep(folder, entry("decoder", ssim=0.5))
    after = folder.read_record()
    assert [e["attack"] for e in after.pop("audit")] == ["linear", "decoder"]
    assert after.pop("leakage")["ssim"] == {"attack": "decoder", "mean": 0.5}
    assert after == before


def test_the_same_attack_again_replaces_its_entry(own_run):
    folder = own_run()
    keep(folder, entry(ssim=0.2))
    keep(folder, entry(ssim=0.4))
    keep(folder, entry(ssim=0.6, budget="full"))
    kept = folder.read_record()["audit"]
    assert [e["metrics"]["ssim"]["mean"] for e in kept] == [0.4, 0.6]


@pytest.mark.parametrize(("metric", "worst"), [("ssim", 0.9), ("mse", 0.1)])
def test_leakage_is_the_worst_of_the_ladder_in_each_metrics_direction(metric, worst):
    entries = [entry("linear", **{metric: 0.1}), entry("decoder", **{metric: 0.9})]
    assert leakage(entries)[metric]["mean"] == worst


def test_trivial_and_published_attacks_are_not_the_claim():
    entries = [
        entry("class-mean", kind="trivial", ssim=0.99),
        entry("unsplit", kind="published", ssim=0.98),
        entry("linear", ssim=0.3),
    ]
    assert leakage(entries)["ssim"]["attack"] == "linear"
    assert leakage(entries[:2]) == {}


@pytest.mark.parametrize(
    ("asked", "is_there"),
    [
        ({}, True),
        ({"budget": "full"}, False),
        ({"client": 1}, False),
        ({"seed": 1}, False),
    ],
    ids=["as-it-was", "harder", "another-client", "another-seed"],
)
def test_an_audit_is_not_made_again_unless_something_else_is_asked(asked, is_there):
    names = ("mean-image", "class-mean", "all-black", "nearest-image", "linear")
    record = {"audit": [entry(name) for name in names]}
    options = AuditOptions(attacks=("linear",), **asked)
    assert is_audited(record, options) is is_there

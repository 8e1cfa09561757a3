import pytest

from lightsplit.audits import AuditOptions
from lightsplit.audits.record import is_audited, keep, leakage
from lightsplit.results import main_leakage


def entry(attack="decoder", *, kind="oracle", budget="quick", options=None, **means):
    return {
        "attack": attack,
        "form": "",
        "options": options or {},
        "kind": kind,
        "budget": budget,
        "client": 0,
        "seed": 0,
        "images": 64,
        "targets": "a",
        "metrics": {name: {"mean": mean} for name, mean in means.items()},
    }


def test_entries_are_added_and_nothing_else_is_lost(own_run):
    folder = own_run()
    before = folder.read_record()
    keep(folder, entry("linear", ssim=0.2))
    keep(folder, entry("decoder", ssim=0.5))
    after = folder.read_record()
    assert [e["attack"] for e in after.pop("audit")] == ["linear", "decoder"]
    [found] = after.pop("leakage")
    assert found["metrics"]["ssim"] == {"attack": "decoder", "mean": 0.5}
    assert found["attacks"] == ["decoder", "linear"]
    assert after == before


def test_the_same_attack_again_replaces_its_entry(own_run):
    folder = own_run()
    keep(folder, entry(ssim=0.2))
    keep(folder, entry(ssim=0.4))
    keep(folder, entry(ssim=0.6, budget="full"))
    kept = folder.read_record()["audit"]
    assert [e["metrics"]["ssim"]["mean"] for e in kept] == [0.4, 0.6]


def test_the_same_attack_with_other_options_has_an_entry_of_its_own(own_run):
    folder = own_run()
    keep(folder, entry(ssim=0.2))
    keep(folder, entry(ssim=0.6, options={"blocks": 4}))
    keep(folder, entry(ssim=0.7, options={"blocks": 4}))
    record = folder.read_record()
    assert [e["options"] for e in record["audit"]] == [{}, {"blocks": 4}]
    assert main_leakage(record)["ssim"] == {"attack": "decoder:blocks=4", "mean": 0.7}


def test_an_entry_from_before_there_were_options_is_one_without_any(own_run):
    folder = own_run()
    old = entry(ssim=0.2)
    del old["options"]
    keep(folder, old)
    keep(folder, entry(ssim=0.3))
    assert len(folder.read_record()["audit"]) == 1


@pytest.mark.parametrize(("metric", "worst"), [("ssim", 0.9), ("mse", 0.1)])
def test_leakage_is_the_worst_of_the_ladder_in_each_metrics_direction(metric, worst):
    entries = [entry("linear", **{metric: 0.1}), entry("decoder", **{metric: 0.9})]
    [found] = leakage(entries)
    assert found["metrics"][metric]["mean"] == worst


def test_a_published_attack_that_gets_the_most_is_the_claim_and_a_trivial_one_never():
    entries = [
        entry("class-mean", kind="trivial", ssim=0.99),
        entry("linear", ssim=0.3),
        {**entry("sdar", kind="published", ssim=0.98), "form": "adaptive"},
        entry("label-hint", kind="labels", accuracy=1.0),
    ]
    [found] = leakage(entries)
    assert found["metrics"]["ssim"]["attack"] == "sdar adaptive"
    assert leakage(entries[:1]) == []


@pytest.mark.parametrize(
    "other",
    [{"targets": "b"}, {"images": 1000}, {"seed": 1}, {"client": 1}],
    ids=lambda other: next(iter(other)),
)
def test_figures_on_other_images_or_by_another_seed_are_not_mixed(own_run, other):
    folder = own_run()
    keep(folder, {**entry("linear", ssim=0.9), **other})
    keep(folder, entry("decoder", ssim=0.3))
    worst = [
        each["metrics"]["ssim"]["mean"] for each in folder.read_record()["leakage"]
    ]
    assert worst == [0.9, 0.3]


def test_a_ladder_names_its_attacks_that_have_not_converged():
    short = {**entry("decoder", ssim=0.5), "converged": False}
    whole = {**entry("whitebox", ssim=0.4), "converged": True}
    assert leakage([short, whole])[0]["not_converged"] == ["decoder"]


@pytest.mark.parametrize(
    ("asked", "is_there"),
    [
        ({}, True),
        ({"attacks": ("linear:ridge=1",)}, False),
        ({"budget": "full"}, False),
        ({"client": 1}, False),
        ({"seed": 1}, False),
        ({"images": 65}, False),
        ({"auxiliary": 2001}, False),
        ({"auxiliary_from": "test"}, False),
        ({"images": 64, "auxiliary": 2000}, True),  # the budget's own numbers
    ],
    ids=str,
)
def test_an_audit_is_not_made_again_unless_something_else_is_asked(asked, is_there):
    names = ("mean-image", "class-mean", "all-black", "nearest-image", "linear")
    before = AuditOptions(attacks=("linear",)).asked
    record = {"audit": [{**entry(name), "asked": before} for name in names]}
    options = AuditOptions(**{"attacks": ("linear",), **asked})
    assert is_audited(record, options) is is_there


def test_a_run_that_sent_nothing_needs_no_audit():
    record = {"experiment": {"codec": {"name": "none"}}}
    assert is_audited(record, AuditOptions(attacks=("linear",)))
    record = {"experiment": {"codec": {"name": "raw"}}}
    assert not is_audited(record, AuditOptions(attacks=("linear",)))


def test_an_entry_of_an_earlier_version_is_known_by_its_number_of_images():
    names = ("mean-image", "class-mean", "all-black", "nearest-image", "linear")
    record = {"audit": [entry(name) for name in names]}
    for images, is_there in ((None, True), (64, True), (100, False)):
        options = AuditOptions(attacks=("linear",), images=images)
        assert is_audited(record, options) is is_there

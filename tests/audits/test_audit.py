"""A whole audit: the files it writes in the run folder, and those it keeps."""

import json

import pytest

from lightsplit.attacks import linear
from lightsplit.audits import AuditOptions, audit
from lightsplit.errors import AuditError, UnknownNameError
from lightsplit.results import main_leakage

pytestmark = pytest.mark.slow

QUICK = AuditOptions(attacks=("linear", "label-hint"), images=12, auxiliary=100)


def files(folder):
    return {
        path.relative_to(folder.path): path.read_bytes()
        for path in folder.path.rglob("*")
        if path.is_file()
    }


def without_time(entries):
    return [{**entry, "seconds": 0} for entry in entries]


def test_figures_go_to_the_record_and_pictures_to_images(own_run, quiet):
    folder = own_run()
    entries = audit(folder, QUICK, watch=quiet)
    record = json.loads(folder.record_file.read_text())
    assert record["audit"] == json.loads(json.dumps(entries))
    assert main_leakage(record)["ssim"]["attack"] == "linear"
    assert (folder.images / "audit.png").is_file()
    assert (folder.images / "audit-linear.png").is_file()


def test_nothing_but_record_and_pictures_changes(own_run, quiet):
    folder = own_run()
    before = files(folder)
    audit(folder, QUICK, watch=quiet)
    changed = {path.parts[0] for path in files(folder) if path not in before} | {
        path.name for path, content in before.items() if files(folder)[path] != content
    }
    assert changed == {"images", "record.json"}


def test_an_audit_can_be_repeated_exactly(own_run, quiet):
    first, second = own_run(), own_run()
    assert without_time(audit(first, QUICK, watch=quiet)) == without_time(
        audit(second, QUICK, watch=quiet)
    )


def test_every_message_of_a_step_is_tried_for_labels(own_run, quiet):
    entries = audit(own_run(), QUICK, watch=quiet)
    messages = [entry["message"] for entry in entries if entry["kind"] == "labels"]
    assert messages == ["code", "output", "output_gradient", "code_gradient"]


def test_a_later_audit_keeps_the_findings_of_an_earlier_one(own_run, quiet):
    folder = own_run()
    audit(folder, QUICK, watch=quiet)
    labels = AuditOptions(attacks=("label-norm",), images=12, auxiliary=100)
    audit(folder, labels, watch=quiet)
    attacks = [entry["attack"] for entry in folder.read_record()["audit"]]
    assert {"linear", "label-hint", "label-norm"} <= set(attacks)
    assert len(attacks) == len(set(attacks)) + 2 * 3  # four messages each


def test_findings_from_before_a_failure_are_kept(own_run, quiet, monkeypatch):
    def fail(*_):
        raise AuditError("no luck")

    monkeypatch.setattr(linear.LinearAttack, "reconstruct", fail)
    folder = own_run()
    with pytest.raises(AuditError, match="no luck"):
        audit(folder, QUICK, watch=quiet)
    kept = [entry["attack"] for entry in folder.read_record()["audit"]]
    assert "mean-image" in kept
    assert "linear" not in kept


def test_another_projection_gives_other_pictures(own_run, quiet):
    """Bit-identical results for two seeds of R would mean that nobody read the code."""
    prints = [
        audit(own_run(codec="lightsplit-f", seed=seed), QUICK, watch=quiet)[4]
        for seed in (0, 1)
    ]
    assert prints[0]["attack"] == prints[1]["attack"] == "linear"
    assert prints[0]["fingerprint"] != prints[1]["fingerprint"]


def test_an_entry_says_what_the_attacker_knew(own_run, quiet):
    entries = audit(own_run(), QUICK, watch=quiet)
    by_name = {entry["attack"]: entry for entry in entries}
    assert by_name["linear"]["knows"] == ["pairs"]
    assert by_name["all-black"]["knows"] == ["image_shape"]
    assert all(entry["threat_model"] for entry in entries)


def test_an_unknown_attack_is_refused_before_anything_is_restored(own_run, quiet):
    folder = own_run()
    before = files(folder)
    with pytest.raises(UnknownNameError, match="did you mean"):
        audit(folder, AuditOptions(attacks=("linaer",)), watch=quiet)
    assert files(folder) == before


def test_private_heads_are_attacked_by_their_own_client(own_run, quiet):
    options = AuditOptions(attacks=("linear",), images=12, auxiliary=100, client=2)
    [found] = [
        entry
        for entry in audit(own_run(heads="private"), options, watch=quiet)
        if entry["attack"] == "linear"
    ]
    assert found["client"] == 2
    assert found["beats_trivial"]


@pytest.mark.parametrize("wire", ["lean", "max"])
def test_a_run_with_rounded_messages_is_audited_as_its_server_read_them(
    own_run, quiet, wire
):
    folder = own_run(wire=wire)
    entries = audit(folder, QUICK, watch=quiet)
    labels = [entry for entry in entries if entry["attack"] == "label-hint"]
    assert len(labels) == 4
    assert next(e for e in entries if e["attack"] == "linear")["metrics"]["ssim"]

"""A card says what the record says, and what nobody measured."""

import numpy as np
import pytest
from PIL import Image

from lightsplit.reports import find_runs
from lightsplit.reports.cards import make_card

SCORE = {"mean": 0.5, "low": 0.4, "high": 0.6, "worst": 0.7, "images": 4}
CERTIFICATE = {
    "bits_per_code": 16,
    "releases": 1,
    "bits_per_sample": 16,
    "epsilon": None,
    "about": "codes",
    "not_about": "labels",
    "samples": 100,
    "distinct_codes": 7,
    "reidentification_bound": 0.07,
}


def entry(name, kind, value, **more):
    metrics = {"ssim": {**SCORE, "mean": value}}
    return {
        "attack": name,
        "kind": kind,
        "threat_model": f"who runs {name}",
        "metrics": metrics,
        "targets": "these",
        **more,
    }


AUDIT = [
    entry("class-mean", "trivial", 0.3),
    entry("decoder", "oracle", 0.5),
    entry(
        "label-hint",
        "labels",
        0.0,
        metrics={"accuracy": {**SCORE, "mean": 0.9}},
        message="output_gradient",
        chance=0.1,
    ),
]
LEAKAGE = [
    {
        "images": 4,
        "targets": "these",
        "not_converged": ["decoder"],
        "metrics": {"ssim": {"attack": "decoder", **SCORE}},
    }
]


@pytest.fixture
def card(make_run, runs_in):
    def make(**options):
        figures = {"certificate": CERTIFICATE, **options.pop("figures", {})}
        make_run("one", figures=figures, **options)
        (run,), _ = runs_in()
        return {section.heading: section for section in make_card(run).sections}

    return make


def test_the_card_of_an_owner_says_whose_figures_they_are(card):
    (_, text) = card(figures={"client": 1})["What was trained"].text
    assert text.startswith("This card is one owner's: steps and bytes are")


def test_without_an_audit_nothing_is_claimed(card):
    (text,) = card()["What the strongest attacker got"].text
    assert "nothing can be said" in text


def test_the_strongest_attack_stands_beside_the_best_guess(card):
    section = card(audit=AUDIT, figures={"leakage": LEAKAGE})[
        "What the strongest attacker got"
    ]
    rebuilt, labels = section.rows
    assert rebuilt[1:] == (
        "decoder: who runs decoder",
        "0.500 (0.400 to 0.600)",
        "0.300",
    )
    assert labels[0] == "labels guessed right from the output gradient"
    assert labels[2:] == ("0.900", "0.100")
    assert any("decoder might improve" in text for text in section.text)


def test_pictures_of_the_strongest_attack_are_shown(make_run, tmp_path):
    folder = make_run("one", audit=AUDIT, figures={"leakage": LEAKAGE})
    folder.images.mkdir()
    for name in ("originals", "decoder", "class-mean", "linear"):
        picture = Image.fromarray(np.zeros((4, 4), dtype=np.uint8))
        picture.save(folder.images / f"audit-{name}.png")
    (run,), _ = find_runs([folder.path])
    section = make_card(run).sections[3]
    shown = [file.stem for _, file in section.pictures]
    assert shown == ["audit-originals", "audit-decoder", "audit-class-mean"]


def test_the_certificate_is_written_out(card):
    rows = dict(card()["What can be said without an attack"].rows)
    assert rows["distinct codes"] == "7 of 100 samples"
    assert rows["samples that codes alone can tell apart, at most"] == "7.0%"


def test_differential_privacy_of_codes_is_written_out_with_its_scope(card):
    promise = {"epsilon": 8.0, "delta": 0.0, "dp_mechanism": "coins", "dp_kept": 0.92}
    known = {**CERTIFICATE, **promise, "dp_scope": "codes alone", "releases": 1}
    made = card(figures={"certificate": known})["What can be said without an attack"]
    rows = dict(made.rows)
    assert rows["differential privacy"] == (
        "codes with ε = 8, δ = 0 (coins, 92.0% of the codes kept; 1 release)"
    )
    assert rows["which is about"] == "codes alone"


def test_an_old_record_has_no_certificate(card):
    section = card(figures={"certificate": None})["What can be said without an attack"]
    assert "no certificate" in section.text[0]


def test_labels_that_were_sent_are_named(card):
    sections = card(topology="vanilla")
    assert "the labels were sent" in sections["Where the model was cut"].text[0]
    assert "Labels: the server got them." in sections["What is not protected"].text


def test_a_shared_head_is_named(card):
    assert any("head is shared" in t for t in card()["What is not protected"].text)


def test_the_cut_of_an_own_task_is_named_by_its_modules(make_run, runs_in):
    make_run("one", figures={"cut": {"head_until": "body.1", "tail_from": "last"}})
    (run,), _ = runs_in()
    run.tables["split"].pop("cut")  # an own task has no named cuts
    text = make_card(run).sections[1].text[0]
    assert "The model is cut after body.1 and before last." in text


def test_a_servers_card_has_every_owners_figure_and_says_who_can_attack(card):
    figures = {
        "clients": {"north": {}, "south": {}},
        "client_names": ["north", "south"],
        "client_figures": [{"accuracy": 0.5}, {"accuracy": 0.75}],
        "monitor": {"name": "accuracy", "last": 0.7},
    }
    sections = card(figures=figures)
    rows = dict(sections["What was trained"].rows)
    assert rows["test accuracy of south"] == "0.75"
    assert "join --record" in sections["What the strongest attacker got"].text[0]
    assert "lightsplit serve" in sections["How to repeat it"].text[0]

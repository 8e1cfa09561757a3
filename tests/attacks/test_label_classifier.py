"""Labels from codes by a classifier."""

import pytest

from lightsplit.attacks import ATTACKS, TARGETS, equip
from lightsplit.attacks.label_classifier import LabelClassifier
from lightsplit.errors import AuditError

pytestmark = pytest.mark.slow


def score(made, **options):
    attack = equip(LabelClassifier, made.knowledge, **options)
    return attack.score(made.view, TARGETS, made.labels)


def test_with_labelled_codes_it_reads_nearly_every_label(scene):
    found = score(scene("lightsplit-f", ratio=4))
    assert found.name == "accuracy"
    assert found.value > 0.9
    assert found.samples == 100


def test_more_labelled_codes_read_more(scene):
    made = scene("lightsplit-f", ratio=8)
    few, many = (score(made, most_pairs=count).value for count in (30, 1_500))
    assert many > few + 0.1


def test_noise_tells_no_label(scene):
    found = score(scene(noise=True))
    assert found.value < found.chance + 0.12  # three deviations of 100 guesses


def test_it_says_how_much_it_learnt_from(scene):
    made = scene()
    attack = equip(LabelClassifier, made.knowledge, most_pairs=200)
    attack.score(made.view, TARGETS, made.labels)
    attack.infer(made.view, TARGETS)
    assert attack.notes == ["learnt from 200 labelled codes"]


def test_it_reads_codes_and_no_other_message(scene):
    made = scene()
    attack = equip(LabelClassifier, made.knowledge)
    assert attack.sources(made.view) == [TARGETS]  # no training step was recorded
    with pytest.raises(AuditError, match="reads codes, got 'output'"):
        attack.infer(made.view, "output")


def test_it_needs_codes_with_labels():
    assert set(ATTACKS.get("label-classifier").needs) == {"pairs", "auxiliary"}

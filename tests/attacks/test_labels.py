"""Labels from the messages of training steps."""

import pytest
import torch

from lightsplit.attacks import ATTACKS, Hints
from lightsplit.errors import AuditError
from lightsplit.protocol import STEP_KINDS

KMEANS = {"name": "label-kmeans", "classes": 10}
NORM = {"name": "label-norm"}


def hint(hints):
    return {"name": "label-hint", "hints": hints}


def every_attack(hints):
    return [ATTACKS.create(**options) for options in (KMEANS, NORM, hint(hints))]


@pytest.mark.parametrize("message", STEP_KINDS)
def test_every_message_is_scored_with_its_chance(training, message):
    view, labels, hints = training(steps=3)
    for attack in every_attack(hints):
        result = attack.score(view, message, labels)
        assert 0 <= result.chance < 1
        assert 0 <= result.value <= 1
        assert len(attack.infer(view, message)) == len(labels)


def test_the_direction_of_the_output_gradient_is_the_label(training):
    view, labels, hints = training()
    for options in (KMEANS, hint(hints)):
        result = ATTACKS.create(**options).score(view, "output_gradient", labels)
        assert result.value > 0.9
        assert result.chance < 0.2


def test_noise_in_place_of_the_gradient_tells_nothing(training):
    view, labels, hints = training()
    for exchange in view.exchanges[1::2]:
        exchange.request.gradient.normal_()
    for attack in every_attack(hints):
        result = attack.score(view, "output_gradient", labels)
        assert result.value < result.chance + 0.05


def test_the_length_of_a_gradient_does_not_matter_to_kmeans(training):
    view, _, _ = training(steps=4)
    attack = ATTACKS.create(**KMEANS)
    before = attack.infer(view, "output_gradient")
    for exchange in view.exchanges[1::2]:
        gradient = exchange.request.gradient
        gradient *= torch.rand(len(gradient), 1) + 0.5
    after = attack.infer(view, "output_gradient")
    together = before.unsqueeze(1) == before
    assert torch.equal(after.unsqueeze(1) == after, together)


def test_the_norm_of_a_row_is_its_score(training):
    view, _, _ = training(steps=2)
    norms = ATTACKS.create(**NORM).infer(view, "code")
    torch.testing.assert_close(norms, view.training_messages("code").norm(dim=1))


def test_the_hints_themselves_do_not_count(training):
    view, labels, hints = training(steps=3)
    result = ATTACKS.create(**hint(hints)).score(view, "code", labels)
    assert result.samples == len(labels) - len(hints.rows)


@pytest.mark.parametrize("message", ["output", "output_gradient"])
def test_a_vanilla_run_has_no_output_to_attack(training, message):
    view, labels, hints = training(topology="vanilla", steps=2)
    for attack in every_attack(hints):
        with pytest.raises(AuditError, match="attack 'code' or 'code_gradient'"):
            attack.score(view, message, labels)
        assert attack.score(view, "code_gradient", labels).value > 0


def test_a_hint_that_was_never_recorded_is_refused(training):
    view, _, _ = training(steps=1)
    beyond = Hints(torch.tensor([32]), torch.tensor([0]))
    with pytest.raises(AuditError, match="row 32 of code, of which the view holds 32"):
        ATTACKS.create(**hint(beyond)).infer(view, "code")


def test_fewer_rows_than_classes_are_refused(training):
    view, _, _ = training(steps=1)
    with pytest.raises(AuditError, match="at least 99 rows of code, got 32"):
        ATTACKS.create("label-kmeans", classes=99).infer(view, "code")

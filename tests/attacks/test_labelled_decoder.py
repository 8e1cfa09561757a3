"""A decoder that is told the labels."""

import pytest
import torch

from lightsplit.attacks import equip
from lightsplit.attacks.decoder import DecoderAttack
from lightsplit.attacks.labelled_decoder import LabelledDecoder, with_labels
from lightsplit.errors import AuditError

pytestmark = pytest.mark.slow

EFFORT = {"most_pairs": 1_600, "steps": 120, "most_steps": 120, "width": 12}


def error(made, attack):
    return made.error(equip(attack, made.knowledge, **EFFORT).reconstruct(made.view))


def test_where_codes_are_noise_it_still_finds_the_class(scene, trivial_error):
    made = scene("lightsplit-f", ratio=32, noise=True)
    assert error(made, LabelledDecoder) < 0.8 * trivial_error(made, ("mean-image",))
    assert error(made, DecoderAttack) > 0.9 * trivial_error(made, ("mean-image",))


def test_a_label_adds_to_a_short_code(scene):
    made = scene("lightsplit-f", ratio=64)
    assert error(made, LabelledDecoder) < error(made, DecoderAttack)


@pytest.mark.parametrize(
    ("code", "told"), [((5,), (8,)), ((2, 4, 4), (5, 4, 4)), ((6, 2), (15,))]
)
def test_labels_become_further_values_or_further_maps(code, told):
    labels = torch.tensor([0, 2])
    codes = torch.randn(2, *code)
    found = with_labels(codes, labels, 3)
    assert found.shape == (2, *told)
    assert found.sum() == pytest.approx(
        float(codes.sum()) + 2 * (16 if len(code) == 3 else 1), rel=1e-4
    )


def test_a_label_is_needed_for_every_code():
    with pytest.raises(AuditError, match="a label for each of 3 codes, got 2"):
        with_labels(torch.zeros(3, 4), torch.zeros(2).long(), 3)

"""Labels from messages, given half of them, with and without protection."""

import math

import pytest
import torch

from lightsplit.attacks import Hints
from lightsplit.attacks.label_known import LabelKnown
from lightsplit.attacks.labels import LabelHint, LabelKMeans, LabelNorm
from lightsplit.errors import AuditError
from lightsplit.protections.label_dp import LabelDP, kept
from lightsplit.protections.marvell import Marvell
from lightsplit.protections.max_norm import MaxNorm
from lightsplit.protections.mean_alignment import MeanAlignment

pytestmark = pytest.mark.slow

SOURCE = "output_gradient"


def known(truth):
    rows = torch.randperm(len(truth), generator=torch.Generator().manual_seed(0))
    rows = rows[: len(truth) // 2]
    return LabelKnown(known_rows=Hints(rows, truth[rows]))


def figures(made):
    """Return the accuracy of every attack on the output gradients."""
    view, truth, hints = made
    attacks = {
        "known": known(truth),
        "hint": LabelHint(hints=hints),
        "kmeans": LabelKMeans(classes=len(torch.unique(truth))),
    }
    scores = {name: one.score(view, SOURCE, truth) for name, one in attacks.items()}
    return {name: score.value for name, score in scores.items()}


def test_unprotected_gradients_give_every_label_away(training):
    assert min(figures(training()).values()) > 0.95


def test_the_length_of_a_gradient_tells_less_under_max_norm_but_its_line_the_same(
    training,
):
    torch.manual_seed(0)
    plain = figures(training(steps=50, lr=1.0))
    found = figures(training(protection=MaxNorm(classes=10), steps=50, lr=1.0))
    for name in ("hint", "kmeans"):  # who expects directions
        assert found[name] < plain[name] - 0.1
    assert found["known"] > 0.9  # who knows lines does not mind


def test_rows_of_either_sign_are_read_by_their_line():
    torch.manual_seed(0)
    rows, labels = torch.eye(10).repeat(8, 1), torch.arange(80) % 10
    signs = torch.sign(torch.randn(80, 1))
    attack = LabelKnown(known_rows=Hints(torch.arange(40), labels[:40]))
    read = attack._readings()["line"]
    assert torch.equal(read((rows * signs)[:40], labels[:40], rows), labels)


def test_a_stronger_alignment_of_means_leaves_less(training):
    found = []
    for strength in (0.0, 0.5, 1.0):
        torch.manual_seed(0)
        one = MeanAlignment(classes=10, strength=strength, noise=4.0)
        found.append(figures(training(protection=one))["known"])
    assert found[0] >= found[1] > found[2]
    assert found[2] < 0.3


def test_marvell_leaves_an_adaptive_attacker_close_to_its_bound(training):
    """An attacker on one gradient is right at most with probability 1 − error."""
    generator = torch.Generator().manual_seed(3)
    truth = torch.randint(2, (32 * 30,), generator=generator)
    plain = figures(training(truth=truth, steps=30))
    assert plain["known"] > 0.95
    torch.manual_seed(0)
    made = training(truth=truth, steps=30, protection=Marvell(classes=2, error=0.4))
    assert max(figures(made).values()) < 0.6 + 3 * math.sqrt(0.24 / 480)
    view, labels, _ = made
    assert LabelNorm().score(view, SOURCE, labels).value < 0.65


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_no_attack_on_drawn_labels_beats_the_closed_form(training, epsilon):
    """Where nothing but the label tells the class: the images are noise."""
    count = 32 * 60
    truth = torch.arange(count) % 10
    torch.manual_seed(1)
    shifts = LabelDP(epsilon=epsilon, classes=10).draw_shifts(count)
    drawn = (truth + shifts) % 10
    made = training(truth=truth, drawn=drawn, steps=60)
    bound = kept(epsilon, 10)
    slack = 4 * math.sqrt(bound * (1 - bound) / (count / 2)) + 0.01
    found = figures(made)
    assert max(found["known"], found["kmeans"]) < bound + slack
    assert found["kmeans"] > bound - 0.15 - slack  # the drawn label itself is read


def test_too_few_known_rows_are_refused(training):
    view, truth, _ = training()
    few = LabelKnown(known_rows=Hints(torch.arange(3), truth[:3]))
    with pytest.raises(AuditError, match="at least 8 known rows"):
        few.infer(view, SOURCE)

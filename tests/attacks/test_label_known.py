"""Labels from messages, given half of them, with and without protection."""

import math

import pytest
import torch

from lightsplit.attacks import Hints
from lightsplit.attacks.label_known import LabelKnown
from lightsplit.attacks.labels import LabelHint, LabelKMeans, LabelNorm, label_rows
from lightsplit.errors import AuditError
from lightsplit.protections.gradient_projection import GradientProjection, spanned
from lightsplit.protections.label_dp import LabelDP
from lightsplit.protections.marvell import Marvell
from lightsplit.protections.max_norm import MaxNorm
from lightsplit.protections.mean_alignment import MeanAlignment, class_means
from lightsplit.randomised_response import kept

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


def gradients(made):
    """Return the output gradients of a run, a row per sample, and their labels."""
    view, truth, _ = made
    return label_rows(view, SOURCE), truth


def test_max_norm_leaves_whoever_reads_lines_exactly_what_it_had(training):
    """Every gradient is times a number, so no line moves, though some are turned."""
    rows, truth = gradients(training(steps=50, lr=1.0))
    torch.manual_seed(0)
    sent = MaxNorm(classes=10).protect(rows, truth)
    read = known(truth)._readings()["line"]
    half = len(rows) // 2
    plain = read(rows[:half], truth[:half], rows[half:])
    assert torch.equal(read(sent[:half], truth[:half], sent[half:]), plain)
    assert (plain == truth[half:]).float().mean() > 0.5  # chance is 0.1
    assert ((sent * rows).sum(dim=1) < 0).float().mean() > 0.05


def test_rows_of_either_sign_are_read_by_their_line():
    torch.manual_seed(0)
    rows, labels = torch.eye(10).repeat(8, 1), torch.arange(80) % 10
    signs = torch.sign(torch.randn(80, 1))
    attack = LabelKnown(known_rows=Hints(torch.arange(40), labels[:40]))
    read = attack._readings()["line"]
    assert torch.equal(read((rows * signs)[:40], labels[:40], rows), labels)


def alike_but_for_means(classes=4, count=4000):
    """Return rows whose classes differ by their means alone, and their labels."""
    torch.manual_seed(4)
    truth = torch.randint(classes, (count,))
    means = 3 * torch.nn.functional.normalize(torch.randn(classes, 12))
    return means[truth] + torch.randn(count, 12), truth


def right(rows, truth):
    """Return the accuracy of the best reading of the second half, given the first."""
    half = len(rows) // 2
    return max(
        (read(rows[:half], truth[:half], rows[half:]) == truth[half:]).float().mean()
        for read in known(truth)._readings().values()
    )


@pytest.mark.parametrize("protection", [MeanAlignment, GradientProjection])
def test_classes_that_differ_by_means_alone_are_chance_when_these_are_removed(
    protection,
):
    """Then all classes have one distribution. Five readings are tried: 5 deviations."""
    rows, truth = alike_but_for_means()
    assert right(rows, truth) > 0.8
    one = protection(classes=4, strength=1.0, noise=1.0)
    bound = 0.25 + 5 * math.sqrt(0.25 * 0.75 / 2000)
    assert right(one.protect(rows, truth), truth) < bound


@pytest.mark.parametrize("strength", [0.3, 0.6])
@pytest.mark.parametrize("protection", [MeanAlignment, GradientProjection])
def test_what_is_left_of_means_is_read_no_better_than_by_who_knows_them(
    protection, strength
):
    """Classes are equally round and likely: the nearest true mean is the best guess."""
    rows, truth = alike_but_for_means()
    one = protection(classes=4, strength=strength, noise=1.0)
    sent = one.protect(rows, truth)
    span, _ = spanned(rows - rows.mean(dim=0), truth, 4)
    seen = sent @ span.T  # nothing else tells classes apart
    means = class_means(seen, truth, 4)
    best = (torch.cdist(seen, means).argmin(dim=1) == truth)[2000:].float().mean()
    assert right(sent, truth) < best + 5 * math.sqrt(0.25 / 2000)


@pytest.mark.parametrize("protection", [MeanAlignment, GradientProjection])
def test_a_protected_run_gives_fewer_labels_away(protection, training):
    torch.manual_seed(0)
    one = protection(classes=10, strength=1.0, noise=1.0)
    assert max(figures(training(protection=one)).values()) < 0.6


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

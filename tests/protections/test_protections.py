"""Label protections by their laws."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.errors import ConfigError
from lightsplit.protections import LABEL_PROTECTIONS, protected
from lightsplit.protections.gradient_projection import GradientProjection, spanned
from lightsplit.protections.label_dp import LabelDP
from lightsplit.protections.marvell import (
    Classes,
    Marvell,
    best_noise,
    described,
    quiet_enough,
)
from lightsplit.protections.max_norm import MaxNorm
from lightsplit.protections.mean_alignment import MeanAlignment, class_means
from lightsplit.randomised_response import kept

laws = settings(max_examples=25, deadline=None)


def batch(classes=2, rows=400, size=6, seed=0):
    torch.manual_seed(seed)
    labels = torch.arange(rows) % classes
    means = torch.randn(classes, size)
    return means[labels] + 0.1 * torch.randn(rows, size), labels


@laws
@given(st.floats(0.1, 8), st.integers(2, 12), st.integers(0, 99))
def test_randomised_response_keeps_labels_as_often_as_epsilon_says(eps, classes, seed):
    torch.manual_seed(seed)
    shifts = LabelDP(epsilon=eps, classes=classes).draw_shifts(20_000)
    share = float((shifts == 0).double().mean())
    p = math.exp(eps) / (math.exp(eps) + classes - 1)
    assert kept(eps, classes) == pytest.approx(p)
    assert abs(share - p) < 5 * math.sqrt(p * (1 - p) / 20_000) + 1e-9
    others = torch.bincount(shifts, minlength=classes)[1:].double() / 20_000
    q = (1 - p) / (classes - 1)
    assert (others - q).abs().max() < 5 * math.sqrt(q * (1 - q) / 20_000) + 1e-9
    assert p / q == pytest.approx(math.exp(eps))  # the promise itself


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 51.0])
def test_an_impossible_epsilon_is_refused(epsilon):
    with pytest.raises(ConfigError, match="must be above 0 and at most 50"):
        LabelDP(epsilon=epsilon, classes=10)


def test_max_norm_brings_squared_lengths_to_the_longest_and_keeps_the_line():
    torch.manual_seed(0)
    rows = torch.tensor([[3.0, 4.0], [0.6, 0.8], [0.0, 0.0]])
    many = rows.repeat(4000, 1)
    sent = MaxNorm(classes=3).protect(many, torch.zeros(len(many)).long())
    squares = sent.square().sum(dim=1).view(-1, 3).mean(dim=0)
    assert squares[0] == pytest.approx(25, rel=1e-4)
    assert squares[1] == pytest.approx(25, rel=0.1)
    assert squares[2] == 0
    cosine = torch.nn.functional.cosine_similarity(sent, many).abs().view(-1, 3)
    torch.testing.assert_close(cosine[:, :2], torch.ones(4000, 2))


def test_full_alignment_gives_every_class_the_same_mean_and_none_gives_its_own():
    rows, labels = batch(classes=4)
    aligned = MeanAlignment(classes=4, strength=1.0, noise=0.0).protect(rows, labels)
    means = class_means(aligned, labels, 4)
    torch.testing.assert_close(means, rows.mean(dim=0).expand_as(means))
    left = MeanAlignment(classes=4, strength=0.0, noise=0.0).protect(rows, labels)
    assert torch.equal(left, rows)


def test_alignment_adds_noise_of_the_deviation_within_classes():
    rows, labels = batch(classes=2, rows=4000)
    moved = MeanAlignment(classes=2, strength=0.0, noise=2.0).protect(rows, labels)
    assert (moved - rows).std().item() == pytest.approx(0.2, rel=0.05)


@laws
@given(st.floats(0, 1), st.integers(2, 6), st.integers(0, 99))
def test_alignment_brings_class_means_closer_by_its_strength(strength, classes, seed):
    rows, labels = batch(classes=classes, seed=seed)
    sent = MeanAlignment(classes=classes, strength=strength, noise=0.0)
    before, after = (
        class_means(some, labels, classes) - rows.mean(dim=0)
        for some in (rows, sent.protect(rows, labels))
    )
    torch.testing.assert_close(after, (1 - strength) * before, atol=1e-5, rtol=1e-4)


def test_max_norm_turns_as_many_gradients_round_as_their_lengths_say():
    torch.manual_seed(2)
    rows = torch.randn(20_000, 5) * torch.rand(20_000, 1)
    sent = MaxNorm(classes=2).protect(rows, torch.zeros(len(rows)).long())
    lengths = rows.norm(dim=1).double()
    spread = ((lengths.max() / lengths).square() - 1).clamp_min(1e-12).sqrt()
    chances = torch.special.ndtr(-1 / spread)
    turned = ((sent * rows).sum(dim=1) < 0).double().mean()
    bound = 5 * (chances * (1 - chances)).sum().sqrt() / len(rows)
    assert abs(turned - chances.mean()) < bound


@laws
@given(st.floats(0, 1), st.integers(2, 5), st.integers(0, 99))
def test_projection_shrinks_what_tells_classes_and_nothing_else(strength, many, seed):
    rows, labels = batch(classes=many, seed=seed)
    one = GradientProjection(classes=many, strength=strength, noise=0.0)
    sent, centre = one.protect(rows, labels), rows.mean(dim=0)
    before = class_means(rows, labels, many) - centre
    after = class_means(sent, labels, many) - centre
    torch.testing.assert_close(after, (1 - strength) * before, atol=1e-5, rtol=1e-4)
    span, _ = spanned(rows - centre, labels, many)
    assert len(span) == many - 1
    rest = torch.eye(6) - span.T @ span
    torch.testing.assert_close(sent @ rest, rows @ rest, atol=1e-5, rtol=1e-4)


def test_projection_leaves_nothing_to_read_where_only_the_span_tells_classes():
    """At strength 1 the span holds noise alone: it is independent of the labels."""
    rows, labels = batch(classes=3, rows=6000)
    torch.manual_seed(3)
    one = GradientProjection(classes=3, strength=1.0, noise=1.0)
    sent = one.protect(rows, labels)
    span, deviation = spanned(rows - rows.mean(dim=0), labels, 3)
    coordinates = (sent - rows.mean(dim=0)) @ span.T
    assert coordinates.std().item() == pytest.approx(deviation.item(), rel=0.05)
    means = class_means(coordinates, labels, 3)
    assert means.abs().max() < 5 * deviation / math.sqrt(2000)
    assert len(span) == 2


def test_projection_of_one_class_covers_what_all_gradients_say():
    rows = torch.ones(40, 6) + 0.01 * torch.randn(40, 6)
    labels = torch.ones(40).long()
    one = GradientProjection(classes=2, strength=1.0, noise=0.0)
    assert one.protect(rows, labels).norm() < 0.05 * rows.norm()
    nothing = torch.zeros(4, 3)
    assert torch.equal(one.protect(nothing, torch.tensor([0, 1, 0, 1])), nothing)


def divergence(classes, along, across):
    (u, v), g, d, _ = classes
    a, b, c, e = along[0] + u, along[1] + v, across[0] + u, across[1] + v
    return 0.5 * ((d - 1) * (c / e + e / c) + (a + g) / b + (b + g) / a) - d


@laws
@given(
    st.floats(0.01, 2),
    st.floats(0.01, 2),
    st.floats(0.1, 5),
    st.integers(2, 40),
    st.floats(0.1, 0.9),
    st.integers(0, 999),
)
def test_no_other_noise_of_the_same_power_is_quieter(u, v, g, size, share, seed):
    classes, power = Classes((u, v), g, size, share), 2 * g
    found = best_noise(classes, power)
    weights = torch.tensor([1 - share, share], dtype=torch.float64)
    assert found.divergence == pytest.approx(
        divergence(classes, found.along, found.across)
    )
    spent = sum(
        float(w) * (a + (size - 1) * b)
        for w, a, b in zip(weights, found.along, found.across, strict=True)
    )
    assert spent == pytest.approx(power)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(200):
        across = torch.rand(2, generator=generator, dtype=torch.float64)
        along = across + torch.rand(2, generator=generator, dtype=torch.float64) * size
        cost = float((weights * (along + (size - 1) * across)).sum())
        along, across = along * power / cost, across * power / cost
        other = divergence(classes, along.tolist(), across.tolist())
        assert found.divergence <= other * (1 + 1e-6) + 1e-9


def test_power_grows_until_the_divergence_is_low_enough():
    classes = Classes((0.1, 0.2), 4.0, 10, 0.3)
    assert best_noise(classes, 4.0).divergence > 0.16
    assert quiet_enough(classes, 1.0, 0.16).divergence <= 0.16


def test_marvell_leaves_every_threshold_with_the_promised_error():
    """The best direction is that of the means; along it, no threshold does better."""
    rows, labels = batch(rows=8000)
    torch.manual_seed(1)
    sent = Marvell(classes=2, error=0.4).protect(rows, labels)
    gap, _ = described(rows, labels)

    def least_error(some):
        order = (some @ gap).argsort()
        ones = labels[order].cumsum(0)
        zeros = (1 - labels[order]).cumsum(0)
        wrong = (ones / ones[-1] + 1 - zeros / zeros[-1]) / 2
        return float(torch.minimum(wrong, 1 - wrong).min())

    assert least_error(rows) < 0.01
    assert least_error(sent) > 0.4 - 0.02


def test_a_batch_of_one_class_gets_noise_too():
    rows, _ = batch(classes=1, rows=40)
    labels = torch.ones(40).long()
    torch.manual_seed(0)
    sent = Marvell(classes=2).protect(rows, labels)
    assert torch.isfinite(sent).all()
    assert (sent - rows).norm() > rows.norm()


def test_gradients_that_are_all_zero_stay_so():
    nothing = torch.zeros(4, 3)
    assert torch.equal(
        Marvell(classes=2).protect(nothing, torch.tensor([0, 1, 0, 1])), nothing
    )


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("marvell", {"classes": 10}, "marvell is for two classes and this task has 10"),
        ("marvell", {"classes": 2, "error": 0.5}, "an error from 0 to below 0.5"),
        ("marvell", {"classes": 2, "power": 0.0}, "a power above 0"),
        ("mean-alignment", {"classes": 3, "strength": 1.5}, "a strength from 0 to 1"),
        ("gradient-projection", {"classes": 3, "noise": -1.0}, "a noise of 0 or more"),
    ],
)
def test_options_that_make_no_sense_are_refused(name, options, reason):
    with pytest.raises(ConfigError, match=reason):
        LABEL_PROTECTIONS.create(name, **options)


@pytest.mark.parametrize("name", LABEL_PROTECTIONS.names())
def test_every_protection_keeps_the_shape_and_draws_from_torchs_generator(name):
    needed = {"epsilon": 1.0} if name == "label-dp" else {}
    one = LABEL_PROTECTIONS.create(name, classes=2, **needed)
    gradient = torch.randn(20, 3, 4)
    labels = torch.arange(20) % 2
    results = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        results.append(protected([one], labels, gradient))
    assert results[0].shape == gradient.shape
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2]) is not one.protects_gradients


def test_labels_that_are_no_classes_are_refused():
    with pytest.raises(ConfigError, match="one class for each of the 4 rows"):
        protected([MaxNorm(classes=2)], torch.zeros(4, 7), torch.ones(4, 3))

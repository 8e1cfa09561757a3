"""Private codes: what the mechanisms do, and what accountants say of them."""

import math

import pytest
import torch

from lightsplit import seeding
from lightsplit.codecs import CODECS, Code
from lightsplit.errors import ConfigError
from lightsplit.objectives import DifferentialPrivacy, accountants
from lightsplit.randomised_response import changed, kept


def few(bits=4):
    return CODECS.create("lightsplit-b", shape=(16,), bits=bits, hidden=4)


def sent(objective, values):
    with seeding.scope(5, "dp"):
        return objective.disturb(Code(values)).values


@pytest.mark.parametrize(("epsilon", "bits"), [(0.5, 2), (4.0, 4), (8.0, 6)])
def test_codes_are_kept_as_often_as_the_formula_says_and_replaced_evenly(epsilon, bits):
    count = 100_000
    own = torch.ones(count, bits)
    got = sent(DifferentialPrivacy(few(bits), 1, epsilon=epsilon), own)
    share = (got == own).all(1).double().mean().item()
    expected = math.exp(epsilon) / (math.exp(epsilon) + 2**bits - 1)
    assert abs(share - expected) < 5 * math.sqrt(expected * (1 - expected) / count)
    _, times = torch.unique(got, dim=0, return_counts=True)
    assert len(times) == 2**bits
    others = times.sort().values[:-1] if share > 2**-bits else times
    each = count * (1 - expected) / (2**bits - 1)
    assert (others - each).abs().max() < 5.5 * math.sqrt(each)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_code_is_more_than_e_to_the_epsilon_times_as_likely(epsilon):
    objective = DifferentialPrivacy(few(2), 1, epsilon=epsilon)
    count, shares = 200_000, []
    for own in ([1.0, 1.0], [-1.0, 1.0]):
        got = sent(objective, torch.tensor([own]).expand(count, 2))
        number = ((got + 1) / 2 @ torch.tensor([1.0, 2.0])).long()
        shares.append(torch.bincount(number, minlength=4).double() / count)
    measured = (shares[0] / shares[1]).log().abs().max().item()
    rarest = torch.cat(shares).min().item()
    assert abs(measured - epsilon) < 5 * math.sqrt(2 / (count * rarest))


def test_fsq_is_replaced_among_all_codes_of_its_levels():
    codec = CODECS.create("fsq", shape=(16,), values=2, levels=3, hidden=4)
    got = sent(DifferentialPrivacy(codec, 1, epsilon=0.1), torch.zeros(2000, 2))
    assert len(torch.unique(got, dim=0)) == 9
    torch.testing.assert_close(codec.unpack(codec.pack(Code(got))).values, got)


def test_a_kept_code_passes_its_gradient_and_a_replaced_one_none():
    values = torch.ones(1000, 4, requires_grad=True)
    got = sent(DifferentialPrivacy(few(), 1, epsilon=2.0), values)
    got.sum().backward()
    is_kept = (got == 1).all(1)
    assert 0 < is_kept.sum() < 1000
    assert torch.equal(values.grad, is_kept[:, None].expand(1000, 4).float())


def test_every_code_is_disturbed_in_training_and_in_prediction():
    objective = DifferentialPrivacy(few(), 1, epsilon=1.0)
    values = torch.ones(500, 4)
    in_training = sent(objective.train(), values)
    assert torch.equal(in_training, sent(objective.eval(), values))
    assert not torch.equal(in_training, values)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("choices", [2, 64, 4096])
def test_the_accountants_epsilon_of_a_response_is_the_closed_form(epsilon, choices):
    told = accountants.response_epsilon(kept(epsilon, choices), choices)
    assert told == pytest.approx(epsilon, abs=2e-6)


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 20.0])
def test_what_is_not_kept_is_changed(epsilon):
    assert changed(epsilon, 64) == pytest.approx(1 - kept(epsilon, 64), rel=1e-6)


@pytest.mark.parametrize("releases", [1, 20])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_gaussian_noise_is_what_the_accountant_asks_for(epsilon, releases):
    delta = 1e-5
    multiplier = accountants.noise_multiplier(epsilon, delta, releases)
    spent = accountants.gaussian_epsilon(multiplier, delta, releases)
    assert epsilon - 0.002 < spent <= epsilon
    # Zero-concentrated privacy gives an upper bound in closed form, and the exact
    # Gaussian mechanism a lower one: the accountant lies between.
    rho = releases / (2 * multiplier**2)
    assert spent <= rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert _exact_delta(math.sqrt(2 * rho), spent) <= delta


def _exact_delta(shift, epsilon):
    """Return δ of the Gaussian mechanism by its exact curve (Balle and Wang, 2018)."""
    normal = torch.distributions.Normal(0.0, 1.0)
    places = torch.tensor([shift / 2 - epsilon / shift, -shift / 2 - epsilon / shift])
    first, second = normal.cdf(places.double()).tolist()
    return first - math.exp(epsilon) * second


@pytest.mark.parametrize("norm", [0.5, 3.0])
def test_codes_of_floats_are_clipped_and_get_noise_of_twice_the_norm(norm):
    codec = CODECS.create("raw", shape=(2, 8))
    objective = DifferentialPrivacy(codec, 3, epsilon=2.0, delta=1e-6, norm=norm)
    values = torch.zeros(4000, 2, 8)
    values[:, 0, 0] = 100.0
    noise = sent(objective, values) - values * (norm / 100)
    expected = 2 * norm * accountants.noise_multiplier(2.0, 1e-6, 3)
    assert noise.std().item() == pytest.approx(expected, rel=0.02)
    assert abs(noise.mean().item()) < 5 * expected / math.sqrt(noise.numel())
    promise = objective.promise()
    assert (promise["delta"], promise["dp_kept"]) == (1e-6, None)
    assert promise["epsilon"] == pytest.approx(2, abs=0.002)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e30])
def test_a_sample_that_makes_a_head_overflow_gets_a_code_like_any_other(value):
    """A server could steer a head so that one sample does; its code must hide it."""
    floats = DifferentialPrivacy(CODECS.create("raw", shape=(4,)), 1, epsilon=2.0)
    got = sent(floats, torch.full((2000, 4), value))
    assert got.isfinite().all()
    assert got.mean(dim=0).norm() < 1 + 5 * floats.mechanism.sigma / math.sqrt(2000)


def test_numbers_that_are_none_become_one_of_the_few_codes():
    got = sent(
        DifferentialPrivacy(few(2), 1, epsilon=1.0), torch.full((5000, 2), math.nan)
    )
    seen, times = torch.unique(got, dim=0, return_counts=True)
    assert len(seen) == 4
    expected = 5000 * torch.tensor(sorted([kept(1.0, 4)] + 3 * [changed(1.0, 4) / 3]))
    assert (times.sort().values - expected).abs().max() < 5 * math.sqrt(5000 / 4)


@pytest.mark.parametrize(
    ("codec", "options", "releases", "reason"),
    [
        ("lightsplit-b", {}, 5, "each of 5 releases .* give --release once"),
        ("lightsplit-b", {"bits": 33}, 1, "more than 32 bits would keep almost none"),
        ("lightsplit-b", {"per_token": True}, 1, "drop per_token"),
        ("fsq", {"values": 20, "levels": 8}, 1, "more than 32 bits"),
        ("c3", {}, 1, "mixes the samples of a batch"),
        ("splitfc", {}, 1, "mixes the samples of a batch"),
        ("topk", {}, 1, "sends the places of values beside them"),
        ("mask-sparse", {}, 1, "mixes the samples|writes its numbers by itself"),
    ],
)
def test_codes_that_cannot_be_made_private_are_refused(
    codec, options, releases, reason
):
    made = CODECS.create(codec, shape=(4, 16), **options)
    with pytest.raises(ConfigError, match=reason):
        DifferentialPrivacy(made, releases, epsilon=8.0)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"epsilon": 0.0}, "must be above 0 and at most 30"),
        ({"epsilon": 31.0}, "must be above 0 and at most 30"),
        ({"epsilon": 1.0, "delta": 0.0}, "a delta between 0 and 1"),
        ({"epsilon": 1.0, "norm": 0.0}, "a norm above 0"),
    ],
)
def test_options_out_of_range_are_refused(options, reason):
    with pytest.raises(ConfigError, match=reason):
        DifferentialPrivacy(CODECS.create("raw", shape=(4,)), 1, **options)

import math

import pytest
import torch

from lightsplit import seeding
from lightsplit.codecs import CODECS, Code
from lightsplit.errors import ConfigError
from lightsplit.objectives import ClientView, ConditionalEntropyMaximisation

RAW = CODECS.create("raw", shape=(4,))


def view(values, labels):
    return ClientView(None, values, Code(values), None, labels, values)


def test_what_is_sent_is_bounded_and_has_noise_of_the_given_size():
    values = torch.randn(500, 4)
    objective = ConditionalEntropyMaximisation(RAW, 2, sigma=0.1).eval()
    with seeding.scope(1, "noise"):
        noise = objective.disturb(Code(values)).values - values.sigmoid()
    assert noise.std().item() == pytest.approx(0.1, rel=0.1)


def test_it_is_the_log_of_the_variance_above_that_of_the_noise():
    objective = ConditionalEntropyMaximisation(RAW, 1, sigma=0.2, clusters=1).eval()
    objective.known[:] = 1
    objective.centres[:] = 0.5
    values = torch.logit(torch.tensor([[0.9] * 4, [0.1] * 4]))
    expected = math.log(0.16 + 0.01) - math.log(0.125 * 0.04 + 0.01)
    value = objective(view(values, torch.zeros(2).long()))
    assert value.item() == pytest.approx(expected, rel=1e-4)


def test_clusters_narrower_than_the_noise_cost_nothing():
    objective = ConditionalEntropyMaximisation(RAW, 2, sigma=0.3)
    values = torch.randn(8, 4) * 0.01
    assert objective(view(values, torch.arange(8) % 2)) == 0


def test_centres_start_at_different_samples_and_follow_their_clusters():
    objective = ConditionalEntropyMaximisation(RAW, 1, clusters=2, memory=0.5)
    near, far = torch.full((3, 4), -3.0), torch.full((3, 4), 3.0)
    labels = torch.zeros(6).long()
    for _ in range(20):
        objective(view(torch.cat([near, far]), labels))
    found = objective.centres[0].sort(dim=0).values[:, 0]
    torch.testing.assert_close(found, torch.tensor([-3.0, 3.0]).sigmoid())
    assert {"centres", "known"} <= set(objective.state_dict())


def test_codes_of_bits_and_impossible_options_are_refused():
    bits = CODECS.create("lightsplit-b", shape=(8,))
    with pytest.raises(ConfigError, match="continuous numbers"):
        ConditionalEntropyMaximisation(bits, 2)
    with pytest.raises(ConfigError, match="sigma and tau above 0"):
        ConditionalEntropyMaximisation(RAW, 2, sigma=0.0)

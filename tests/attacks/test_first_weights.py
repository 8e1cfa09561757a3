"""A server that draws the head again from the run's seed."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

from lightsplit.attacks import ATTACKS, equip, first_weights
from lightsplit.attacks.first_weights import FirstWeights, measured, scaled_like
from lightsplit.audits.gathering import first_client
from lightsplit.experiments import pieces
from lightsplit.results import tensors
from lightsplit.runtime import Secret

pytestmark = pytest.mark.slow

SETTINGS = {"codec": "lightsplit-f", "ratio": 4.0, "cut": "l1"}


@pytest.fixture
def begin(in_training):
    """Return what starts a run whose client draws from the seed, or from a secret."""

    def make(secret=None):
        run = in_training(**SETTINGS)
        if secret is not None:
            drawn = pieces.load_parts(run.job.experiment, secret)
            head = run.job.trainer.clients[0].side.modules["head"]
            head.load_state_dict(drawn.head.state_dict())
        run.knowledge = replace(
            run.knowledge, first_client=partial(first_client, *terms(run), 0)
        )
        return run

    return make


def terms(run):
    return run.job.experiment, run.job.contract


def error(run, attack=FirstWeights, **options):
    return run.error(equip(attack, run.knowledge, **options).reconstruct(run.view))


def trivial(run):
    return min(error(run, ATTACKS.get(name)) for name in ("mean-image", "class-mean"))


@pytest.mark.parametrize("steps", [0, 10])
def test_a_head_that_the_seed_gives_hides_little_at_the_first_steps(begin, steps):
    run = begin()
    run.train(steps)
    assert error(run) < 0.5 * trivial(run)


@pytest.mark.parametrize("steps", [0, 10])
def test_a_head_drawn_from_the_clients_secret_leaves_a_trivial_guess(begin, steps):
    run = begin(Secret(2**200 + 17))
    run.train(steps)
    assert error(run) > trivial(run)


def test_the_option_shows_the_same_without_a_client_that_has_a_secret(begin):
    run = begin()
    assert error(run, client_secret=True) > trivial(run)


def test_weights_from_a_file_are_no_secret(begin, tmp_path):
    run = begin()
    public = first_client(*terms(run), 0, False)
    file = tmp_path / "weights.safetensors"
    tensors.save(file, pieces.load_parts(run.job.experiment).whole.state_dict())
    experiment = run.job.experiment.changed(task={"weights": str(file)})
    loaded = first_client(experiment, run.job.contract, 0, True)
    for name, tensor in public.head.state_dict().items():
        assert torch.equal(tensor, loaded.head.state_dict()[name])


def test_a_decoder_can_take_the_place_of_the_linear_estimate(begin, monkeypatch):
    little = first_weights.EFFORTS["quick"]._replace(steps=60, most_steps=60, width=8)
    monkeypatch.setitem(first_weights.EFFORTS, "quick", little)
    run = begin()
    attack = equip(FirstWeights, run.knowledge, decoder=True)
    assert run.error(attack.reconstruct(run.view)) < trivial(run)
    assert attack.converged is False


def test_statistics_are_measured_in_a_copy():
    client = nn.Sequential(nn.BatchNorm2d(1))
    images = 5 + 2 * torch.randn(600, 1, 4, 4)
    found = measured(client, images)
    assert found[0].running_mean.item() == pytest.approx(5, abs=0.1)
    assert found(images).std().item() == pytest.approx(1, abs=0.05)
    assert client[0].running_mean.item() == 0
    assert client.training


def test_codes_are_brought_to_the_scale_of_known_ones_unless_there_are_few():
    torch.manual_seed(0)
    known = torch.randn(500, 3) * torch.tensor([1.0, 2.0, 0.0]) + 4
    codes = torch.randn(100, 3) * 7 - 1
    scaled = scaled_like(codes, known)
    torch.testing.assert_close(scaled.mean(dim=0), known.mean(dim=0))
    torch.testing.assert_close(scaled.std(dim=0), known.std(dim=0))
    assert torch.equal(scaled_like(codes[:5], known), codes[:5])

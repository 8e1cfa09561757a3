import pytest
import torch

from lightsplit.codecs import CODECS, Code
from lightsplit.errors import ConfigError
from lightsplit.objectives import ClientView, Shredder

SHAPE = (6, 5)


def shredder(**options):
    return Shredder(CODECS.create("raw", shape=SHAPE), **options)


def term(objective, activation):
    view = ClientView(None, activation, Code(activation), None, None, activation)
    return objective(view)


def test_a_sample_is_sent_with_one_of_the_tensors():
    objective = shredder(tensors=3)
    activation = torch.randn(40, *SHAPE)
    added = objective.cover(activation).activation - activation
    distances = torch.cdist(added.flatten(1), objective.noise.flatten(1))
    assert distances.min(dim=1).values.max() < 0.01
    assert len(distances.argmin(dim=1).unique()) == 3


def test_noise_begins_with_the_size_and_shape_of_laplace_noise():
    noise = shredder(tensors=2000, scale=0.3).noise.detach()
    assert noise.std().item() == pytest.approx(0.3 * 2**0.5, rel=0.03)
    fourth = (noise / noise.std()).pow(4).mean().item()
    assert fourth == pytest.approx(6, rel=0.15)


def test_noise_grows_until_it_is_large_enough_for_the_signal():
    objective = shredder(scale=0.1, enough=2.0)
    activation = torch.randn(64, *SHAPE)
    optimizer = torch.optim.SGD(objective.parameters(), lr=20.0)
    for _ in range(500):
        value = term(objective, activation)
        if not value.requires_grad:
            break
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    ratio = objective.noise.var() / activation.square().mean()
    assert ratio.item() == pytest.approx(2.0, rel=0.1)
    assert objective.privacy(activation) == pytest.approx(ratio.item(), rel=1e-4)


@pytest.mark.parametrize("options", [{"tensors": 0}, {"scale": 0.0}, {"enough": -1.0}])
def test_noise_of_no_size_is_refused(options):
    with pytest.raises(ConfigError, match="shredder needs at least 1 tensor"):
        shredder(**options)

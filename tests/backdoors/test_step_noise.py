import pytest
import torch

from lightsplit.backdoors.step_noise import ROWS, StepNoise


def noisy(steps=300, clients=3, spread=(1.0, 0.1, 0.0)):
    generator = torch.Generator().manual_seed(0)
    known = StepNoise()
    for _ in range(steps):
        for client in range(clients):
            noise = torch.randn(3, generator=generator, dtype=torch.float64)
            known.add("code", client, 10.0 * client + torch.tensor(spread) * noise)
    return known


def test_the_sketch_has_the_covariance_of_a_step_within_a_client():
    noise = noisy().of("code")
    rows = noise.of_one_step
    assert rows.shape == (ROWS, 3)
    assert rows.std(0)[0].item() == pytest.approx(1.0, rel=0.25)
    assert rows.std(0)[1].item() == pytest.approx(0.1, rel=0.25)
    assert not rows[:, 2].any()


def test_steps_are_counted_for_each_client():
    known = noisy(steps=2)
    known.add("code", 0, torch.zeros(3, dtype=torch.float64))
    noise = known.of("code")
    assert noise.steps == {0: 3, 1: 2, 2: 2}
    assert noise.count == 4


def test_one_step_of_each_client_tells_nothing_about_noise():
    assert noisy(steps=1).of("code") is None
    assert StepNoise().of("code") is None


def test_kinds_are_apart_and_nothing_is_left_after_clearing():
    known = noisy()
    assert known.of("output") is None
    known.clear()
    assert known.of("code") is None


def test_noise_continues_from_its_state():
    whole, first = noisy(steps=6), noisy(steps=3)
    resumed = StepNoise()
    resumed.load(first.state())
    generator = torch.Generator().manual_seed(0)
    for step in range(6):
        for client in range(3):
            noise = torch.randn(3, generator=generator, dtype=torch.float64)
            vector = 10.0 * client + torch.tensor((1.0, 0.1, 0.0)) * noise
            if step >= 3:
                resumed.add("code", client, vector)
    assert resumed.state().keys() == whole.state().keys()
    for key, tensor in whole.state().items():
        assert torch.equal(resumed.state()[key], tensor)

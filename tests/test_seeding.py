import itertools

import pytest
import torch

from lightsplit import seeding

NAMES = [(), ("a",), ("b",), (1,), ("1",), ("a", 1), (1, "a"), ("a", "1"), ("a1",)]


def test_the_same_names_give_the_same_seed():
    assert seeding.derive(3, "client", 1) == seeding.derive(3, "client", 1)


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(NAMES, 2)))
def test_other_names_give_another_seed(one, other):
    assert seeding.derive(0, *one) != seeding.derive(0, *other)


def test_other_seeds_give_other_seeds():
    assert len({seeding.derive(seed, "x") for seed in range(100)}) == 100


@pytest.mark.parametrize("seed", [0, 1, 2**63, 10**30])
def test_a_derived_seed_suits_torch_and_numpy(seed):
    derived = seeding.derive(seed, "x")
    assert 0 <= derived < 2**63
    torch.Generator().manual_seed(derived)
    seeding.numpy_generator(seed, "x").integers(10)


def test_a_scope_draws_the_same_wherever_it_stands():
    with seeding.scope(0, "step", 3):
        first = torch.rand(4)
    torch.rand(7)
    with seeding.scope(0, "step", 3):
        assert torch.equal(torch.rand(4), first)
    with seeding.scope(0, "step", 4):
        assert not torch.equal(torch.rand(4), first)


def test_a_scope_leaves_the_generator_as_it_was_even_after_an_error():
    def draw_and_fail():
        with seeding.scope(0, "x"):
            raise KeyError(torch.rand(1))

    state = torch.get_rng_state()
    with pytest.raises(KeyError):
        draw_and_fail()
    assert torch.equal(torch.get_rng_state(), state)


def test_numpy_generators_of_the_same_names_draw_the_same():
    first = seeding.numpy_generator(0, "order", 1).permutation(50).tolist()
    assert seeding.numpy_generator(0, "order", 1).permutation(50).tolist() == first
    assert seeding.numpy_generator(0, "order", 2).permutation(50).tolist() != first


def test_a_scope_draws_the_same_as_torch_with_the_derived_seed():
    with seeding.scope(3, "client", 1):
        ours = torch.rand(5)
    torch.manual_seed(seeding.derive(3, "client", 1))
    assert torch.equal(ours, torch.rand(5))


def wide(*names, seed=2**200, count=4):
    with seeding.wide_scope(seed, *names):
        return torch.rand(count)


def test_a_wide_scope_draws_the_same_for_the_same_names_alone():
    assert torch.equal(wide("step", 3), wide("step", 3))
    assert not torch.equal(wide("step", 3), wide("step", 4))
    assert not torch.equal(wide("step", 3), wide("step", 3, seed=2**200 + 1))


def test_a_wide_scope_leaves_the_generator_as_it_was_even_after_an_error():
    state = torch.get_rng_state()
    with pytest.raises(KeyError), seeding.wide_scope(2**200, "x"):
        raise KeyError(torch.randn(1))
    assert torch.equal(torch.get_rng_state(), state)


def test_a_wide_scope_draws_evenly():
    numbers = wide("x", count=200_000)
    counts = torch.histc(numbers, 20, 0, 1)
    assert float((counts - 10_000).abs().max()) < 500
    with seeding.wide_scope(2**200, "x"):
        normal = torch.randn(200_000)
    assert abs(float(normal.mean())) < 0.01
    assert abs(float(normal.std()) - 1) < 0.01


def test_torch_uses_32_bits_of_a_seed_which_is_why_a_wide_scope_exists():
    draws = [
        torch.rand(4, generator=torch.Generator().manual_seed(seed))
        for seed in (5, 5 + 2**40)
    ]
    assert torch.equal(*draws)

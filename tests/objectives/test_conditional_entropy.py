import pytest
import torch

from lightsplit.codecs import CODECS, Code
from lightsplit.errors import ConfigError
from lightsplit.objectives import ClientView, ConditionalEntropy

BITS = CODECS.create("lightsplit-b", shape=(20,), bits=3)
LABELS = torch.tensor([0, 0, 0, 0, 1, 1])


def view(latent, labels=LABELS):
    return ClientView(None, latent, Code(latent.sign()), None, labels, latent)


def latent_of(bits):
    return (torch.tensor(bits) * 100.0).requires_grad_()


# class 0: the first bit is undecided, class 1: the last two; in bits 4/6 · 1 + 2/6 · 2
MIXED = [[1, 1, 1], [-1, 1, 1], [1, 1, 1], [-1, 1, 1], [1, 1, -1], [1, -1, 1]]


def test_it_is_the_entropy_of_the_bits_within_each_class_above_the_budget():
    entropy = ConditionalEntropy(BITS, 2, budget=0.0)(view(latent_of(MIXED)))
    assert entropy.item() == pytest.approx(4 / 6 + 2 * 2 / 6, abs=1e-5)
    excess = ConditionalEntropy(BITS, 2, budget=1.0)(view(latent_of(MIXED)))
    assert excess.item() == pytest.approx(1 / 3, abs=1e-5)


def test_within_the_budget_nothing_is_pulled():
    latent = (torch.randn(6, 3) * 0.1).requires_grad_()
    ConditionalEntropy(BITS, 2, budget=3.0)(view(latent)).backward()
    assert latent.grad.abs().sum() == 0


def test_beyond_the_budget_bits_of_a_class_are_pulled_to_each_other():
    latent = torch.tensor([[0.2, 0.0, 0.0], [-0.1, 0.0, 0.0]], requires_grad=True)
    labels = torch.zeros(2).long()
    ConditionalEntropy(BITS, 2, budget=0.0)(view(latent, labels)).backward()
    assert bool((latent.grad[:, 0] < 0).all())  # towards 1, as most of the class


def test_means_run_over_batches_and_belong_to_the_state():
    objective = ConditionalEntropy(BITS, 2, budget=0.0, memory=0.75)
    objective(view(latent_of(MIXED)))
    torch.testing.assert_close(objective.ones[0], torch.tensor([0.5, 1.0, 1.0]))
    objective(view(latent_of([[1, 1, 1]]), LABELS[:1]))
    torch.testing.assert_close(objective.ones[0], torch.tensor([0.625, 1.0, 1.0]))
    torch.testing.assert_close(objective.ones[1], torch.tensor([1.0, 0.5, 0.5]))
    assert {"ones", "seen", "steps"} <= set(objective.state_dict())


def test_a_measurement_outside_training_changes_nothing():
    objective = ConditionalEntropy(BITS, 2).eval()
    before = {name: value.clone() for name, value in objective.state_dict().items()}
    objective(view(latent_of(MIXED)))
    assert all(value.equal(before[n]) for n, value in objective.state_dict().items())


def test_it_waits_for_the_steps_asked_for():
    objective = ConditionalEntropy(BITS, 2, budget=0.0, after=2)
    values = [objective(view(latent_of(MIXED))).item() for _ in range(3)]
    assert values[:2] == [0, 0]
    assert values[2] > 1


@pytest.mark.parametrize(
    "options", [{"budget": -1.0}, {"steepness": 0.0}, {"memory": 1.0}, {"after": -1}]
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ConfigError, match="conditional-entropy needs a budget"):
        ConditionalEntropy(BITS, 2, **options)


def test_other_codes_and_tasks_without_classes_are_refused():
    with pytest.raises(ConfigError, match="needs a code of bits"):
        ConditionalEntropy(CODECS.create("raw", shape=(4,)), 2)
    with pytest.raises(ConfigError, match="labels that are classes"):
        ConditionalEntropy(BITS, None)

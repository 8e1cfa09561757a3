import torch
from torch import nn
from torch.nn.functional import cross_entropy

from lightsplit.backdoors import INSPECTORS
from lightsplit.backdoors.client_side.splitguard import SHARE, WAIT


def make(seed=0, client=0):
    torch.manual_seed(0)
    return INSPECTORS.create(
        "splitguard", head=nn.Linear(6, 6), classes=4, seed=seed, client=client
    )


def test_wrong_labels_are_wrong_for_every_sample_and_labels_still():
    guard, labels = make(), torch.arange(4).repeat(3)
    probes = [guard.probe(step, labels) for step in range(400)]
    sent = [probe for probe in probes if probe is not None]
    assert all((probe != labels).all() for probe in sent)
    assert all(probe.min() >= 0 and probe.max() < 4 for probe in sent)


def test_the_first_steps_are_left_alone_and_about_a_tenth_of_the_rest_is_not():
    guard = make()
    probed = [guard.probe(s, torch.arange(4)) is not None for s in range(WAIT + 2000)]
    assert not any(probed[:WAIT])
    assert abs(sum(probed) / 2000 - SHARE) < 0.02


def test_probes_are_drawn_from_seed_client_and_step_alone():
    def steps(guard, numbers):
        return {s for s in numbers if guard.probe(s, torch.arange(4)) is not None}

    forward = steps(make(), range(200))
    assert forward == steps(make(), reversed(range(200)))
    assert forward != steps(make(client=1), range(200))
    assert forward != steps(make(seed=1), range(200))


def train(is_honest, steps=400):
    """Train a head with a fixed tail, or push it anywhere; return its inspector."""
    torch.manual_seed(1)
    head, tail = nn.Linear(6, 6), nn.Linear(6, 4)
    optimizer = torch.optim.Adam([*head.parameters(), *tail.parameters()], lr=0.01)
    guard = INSPECTORS.create("splitguard", head=head, classes=4)
    for step in range(steps):
        labels = torch.randint(4, (32,))
        inputs = torch.eye(6)[labels] + 0.1 * torch.randn(32, 6)
        probe = guard.probe(step, labels)
        used = labels if probe is None else probe
        code = head(inputs)
        received = code.detach().requires_grad_()
        loss = cross_entropy(tail(received), used) if is_honest else received.mean()
        loss.backward()
        gradient = received.grad + 1e-4 * torch.randn_like(received)
        guard.observe(step, code, used, gradient)
        if probe is None:
            optimizer.zero_grad()
            code.backward(gradient)
            optimizer.step()
    return guard


def test_a_server_that_trains_the_task_raises_no_alarm():
    guard = train(is_honest=True)
    assert guard.score > 0.95
    assert guard.alarmed_at is None


def test_a_server_that_ignores_the_labels_raises_an_alarm():
    guard = train(is_honest=False)
    assert guard.score < 0.9
    assert guard.alarmed_at < 150


def test_constant_gradients_give_no_nan():
    guard = make()
    head = guard._weights
    for step in range(100):
        guard.probe(step, torch.arange(4))
        code = torch.ones(4, 6) @ head
        guard.observe(step, code, torch.arange(4), torch.zeros(4, 6))
    assert 0 <= guard.score <= 1

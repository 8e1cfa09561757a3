"""The recorded messages are those that crossed, and contain no image."""

import pytest
import torch

from lightsplit.audits.gathering import true_client
from lightsplit.audits.observation import observe

pytestmark = pytest.mark.slow

IMAGE = (1, 8, 8)


def walk(value):
    """Yield every tensor that can be reached from ``value`` by attributes and items."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from walk(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from walk(item)
    elif isinstance(value, torch.nn.Module):
        yield from value.state_dict().values()
    elif hasattr(value, "__dict__"):
        yield from walk(vars(value))


def test_codes_are_the_heads_of_the_targets_in_order(victim_of):
    victim = victim_of()
    client = true_client(victim.side, victim.job.experiment)
    seen = observe(victim, training_samples=40, seed=0)
    torch.testing.assert_close(seen.view.codes, client(victim.targets.images))


def test_training_rows_come_with_their_labels(victim_of):
    seen = observe(victim_of(), training_samples=40, seed=0)
    assert len(seen.labels) == 40
    for kind in ("code", "output", "output_gradient", "code_gradient"):
        assert len(seen.view.training_messages(kind)) == 40


def test_a_sample_that_would_be_left_alone_is_not_trained_on(victim_of):
    seen = observe(victim_of(), training_samples=41, seed=0)
    assert len(seen.labels) == 40


def test_a_vanilla_run_shows_two_messages(victim_of):
    seen = observe(victim_of(topology="vanilla"), training_samples=20, seed=0)
    assert seen.view.recorded_kinds == ("code", "code_gradient")


def test_with_private_heads_the_server_shows_the_victims_statistics(victim_of):
    settings = {"heads": "private", "codec": "lightsplit-l"}
    found = []
    for client in (0, 1):
        victim = victim_of(client=client, **settings)
        [snapshot] = observe(victim, training_samples=20, seed=0).view.weights
        kept = victim.job.trainer.server.side.state()
        means = [name for name in snapshot.state if name.endswith("running_mean")]
        assert means
        found.append(torch.cat([snapshot.state[name] for name in means]))
        first = torch.cat([kept[name] for name in means])
        assert not torch.equal(found[-1], first)
    assert not torch.equal(*found)


def test_the_servers_weights_are_those_before_the_further_steps(victim_of):
    victim = victim_of()
    side = victim.job.trainer.server.side
    before = {name: t.clone() for name, t in side.modules.state_dict().items()}
    [snapshot] = observe(victim, training_samples=40, seed=0).view.weights
    assert all(torch.equal(snapshot.state[name], before[name]) for name in before)
    after = side.modules.state_dict()
    assert any(not torch.equal(after[name], before[name]) for name in before)


def test_the_projection_is_the_clients_own_but_a_learned_encoder_is_not(victim_of):
    fixed = observe(victim_of(codec="lightsplit-f"), training_samples=20, seed=0)
    victim = victim_of(codec="learned-1x1")
    learned = observe(victim, training_samples=20, seed=0)
    assert fixed.view.codec.fingerprint == fixed.view.contract.fingerprint
    mine = victim.side.modules["encoder"].state_dict()
    theirs = learned.view.codec.encoder.state_dict()
    assert any(not torch.equal(mine[name], theirs[name]) for name in mine)


def test_no_image_and_no_label_can_be_reached_from_a_view(victim_of):
    victim = victim_of(codec="raw")
    view = observe(victim, training_samples=40, seed=0).view
    images = {
        image.numpy().tobytes()
        for image in victim.job.dataset.train.batch(
            torch.arange(len(victim.job.dataset.train))
        )[0]
    }
    found = list(walk(view))
    assert found
    for tensor in found:
        assert tuple(tensor.shape[-3:]) != IMAGE
        assert tensor.dtype != torch.uint8
        rows = tensor.float().reshape(len(tensor), -1) if tensor.ndim > 1 else []
        assert not images & {row.numpy().tobytes() for row in rows}

"""The attacker's knowledge is a true copy."""

import pytest
import torch

from lightsplit.audits.gathering import (
    first_of_each_class,
    gather,
    let_oracles_know,
    true_client,
)
from lightsplit.audits.observation import observe

pytestmark = pytest.mark.slow


def test_pairs_hold_true_codes_and_activations(victim_of):
    victim = victim_of(codec="lightsplit-f")
    known = let_oracles_know(gather(victim, auxiliary=30, seed=0), victim)
    head, encoder = victim.side.modules["head"].eval(), victim.side.modules["encoder"]
    activations = head(known.auxiliary.images)
    torch.testing.assert_close(known.pairs.activations, activations)
    torch.testing.assert_close(known.pairs.codes, encoder(activations).values)
    assert len(known.pairs.images) == 30


def test_without_oracles_nothing_of_the_victims_weights_is_known(victim_of):
    known = gather(victim_of(), auxiliary=5, seed=0)
    assert known.client is None
    assert known.pairs is None


def test_an_architecture_has_the_victims_layers_and_other_weights(victim_of):
    victim = victim_of()
    fresh = gather(victim, auxiliary=5, seed=0).architecture().state_dict()
    trained = victim.side.modules["head"].state_dict()
    assert {n: t.shape for n, t in fresh.items()} == {
        n: t.shape for n, t in trained.items()
    }
    assert any(not torch.equal(fresh[name], trained[name]) for name in trained)


def test_the_attackers_knowledge_does_not_change_as_the_victim_trains(victim_of):
    victim = victim_of()
    known = let_oracles_know(gather(victim, auxiliary=5, seed=0), victim)
    images = victim.targets.images
    before = known.client(images)
    observe(victim, training_samples=40, seed=0)
    assert torch.equal(known.client(images), before)
    now = true_client(victim.side, victim.job.experiment)
    assert not torch.allclose(now(images), before)


def test_the_known_client_is_frozen(victim_of):
    victim = victim_of()
    client = let_oracles_know(gather(victim, auxiliary=5, seed=0), victim).client
    assert not any(p.requires_grad for p in client.parameters())
    assert all(p.requires_grad for p in victim.side.modules["head"].parameters())


def test_hints_are_the_first_of_each_class():
    hints = first_of_each_class(torch.tensor([2, 0, 2, 5, 0]))
    assert hints.labels.tolist() == [0, 2, 5]
    assert hints.rows.tolist() == [1, 0, 3]


@pytest.mark.parametrize("codec", ["c3", "splitfc"])
def test_pairs_of_a_codec_that_mixes_samples_are_made_in_batches_of_the_run(
    victim_of, codec
):
    victim = victim_of(codec=codec)
    known = let_oracles_know(gather(victim, auxiliary=30, seed=0), victim)
    size = victim.job.experiment.training.batch_size
    head, made = victim.side.modules["head"].eval(), victim.side.codec
    made.encoder.eval()
    with torch.no_grad():
        batches = torch.split(known.auxiliary.images, size)
        lifted = [made.decoder(made.encoder(head(batch))) for batch in batches]
    torch.testing.assert_close(known.pairs.codes, torch.cat(lifted))
    view = observe(victim, training_samples=20, seed=0).view
    assert view.codes.shape == (12, *made.shape)

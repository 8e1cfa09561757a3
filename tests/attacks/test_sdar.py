"""SDAR: learns beside the victim without touching it, as the release does."""

import pytest
import torch

from lightsplit.attacks import TARGETS
from lightsplit.attacks.sdar_training import Settings, flip
from lightsplit.codecs import Code
from lightsplit.errors import AuditError

pytestmark = pytest.mark.slow

SMALL = Settings(width=16, simulator_weight=0.5, simulator_lr=2e-3, decoder_lr=5e-3)
# Rates for a tiny problem; the released ones are for 20,000 iterations.
FAST = Settings(width=32, simulator_weight=0.2, simulator_lr=2e-3, decoder_lr=5e-3)
UNTOLD = ("mean-image", "all-black")  # trivial attackers that know no label
TOPOLOGIES = ("u", "vanilla")
# A server with running statistics in its decoder, and a head with them.
NORMALISED = {"codec": "lightsplit-l", "ratio": 4.0, "hidden": 8, "cut": "l2"}


def begun(run, form="published", settings=SMALL, **options):
    return run.prepare("sdar", form=form, settings=settings, **options)


def snapshot(module):
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def is_same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.slow
def test_it_finds_images_and_labels_in_codes_and_nothing_in_noise(
    in_training, trivial_error
):
    run = in_training(cut="l2")
    attack = begun(run, settings=FAST)
    run.train(300, attack)
    images, labels = attack.reconstruct(run.view), attack.infer(run.view, TARGETS)
    assert run.error(images) < 0.7 * trivial_error(run, UNTOLD)
    assert float((labels == run.targets.labels).double().mean()) > 0.5
    run.noise = True
    assert run.error(attack.reconstruct(run.view)) > trivial_error(run, UNTOLD)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_victim_is_the_same_with_and_without_the_attack(in_training, topology):
    alone, watched = (in_training(topology=topology, **NORMALISED) for _ in range(2))
    alone.train(3)
    watched.train(3, begun(watched))
    for one, other in zip(alone.sides(), watched.sides(), strict=True):
        assert is_same(one.state(), other.state())


def test_it_runs_the_servers_weights_as_they_are_after_the_step(in_training):
    run = in_training(**NORMALISED)
    attack = begun(run)
    run.train(1, attack)
    _, server = run.sides()
    assert is_same(attack.server.state_dict(), server.modules.state_dict())


def test_the_servers_network_is_in_evaluation_mode_and_does_not_move(in_training):
    run = in_training(**NORMALISED)
    attack = begun(run)
    run.train(1, attack)
    before = snapshot(attack.server)
    attack.learn(attack._latest, attack._batches.next(32))
    assert not any(module.training for module in attack.server.modules())
    assert is_same(before, attack.server.state_dict())


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_network_makes_two_passes_in_an_iteration(in_training, topology):
    run = in_training(topology=topology, **NORMALISED)
    attack = begun(run)
    run.train(3, attack)
    for name in ("simulator", "activation_judge", "decoder", "image_judge"):
        counted = [
            int(tensor)
            for key, tensor in attack.learners[name].state().items()
            if key.endswith("num_batches_tracked")
        ]
        assert counted, name
        assert set(counted) == {6}, name  # real and fake apart, or before and after


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_network_learns_from_every_step(in_training, topology):
    run = in_training(topology=topology)
    attack = begun(run, settings=Settings(width=16, decoder_weight=1.0))
    before = {n: snapshot(one.network) for n, one in attack.learners.items()}
    run.train(1, attack)
    assert ("tail" in before) == (topology == "u")
    for name, learner in attack.learners.items():
        assert not is_same(before[name], learner.network.state_dict()), name


@pytest.mark.parametrize("form", ["published", "adaptive"])
@pytest.mark.parametrize(
    ("codec", "ratio"),
    [("lightsplit-f", 8.0), ("lightsplit-l", 8.0), ("learned-1x1", 8.0), ("topk", 8.0)],
)
def test_every_codec_can_be_attacked_in_both_forms(in_training, codec, ratio, form):
    run = in_training(codec=codec, ratio=ratio)
    attack = begun(run, form)
    run.train(2, attack)
    assert attack.reconstruct(run.view).shape == run.targets.images.shape
    assert attack.infer(run.view, TARGETS).shape == run.targets.labels.shape
    assert attack.guess().images.shape == (32, 1, 8, 8)


def test_only_the_adaptive_form_learns_to_lift(in_training):
    run = in_training(codec="lightsplit-f", ratio=8.0)
    weights = {
        form: "lift.weight" in begun(run, form).learners["decoder"].state()
        for form in ("published", "adaptive")
    }
    assert weights == {"published": False, "adaptive": True}


def test_without_a_codec_both_forms_do_the_same(in_training):
    images = []
    for form in ("published", "adaptive"):
        run = in_training()
        attack = begun(run, form)
        run.train(2, attack)
        images.append(attack.reconstruct(run.view))
    assert torch.equal(*images)
    assert any("both forms are the same" in note for note in attack.notes)


def test_compaction_can_be_part_of_the_simulators_loss(in_training):
    codes = []
    for wcc in (0.0, 1.0):
        run = in_training(codec="lightsplit-f", ratio=8.0)
        attack = begun(run, settings=Settings(width=16, wcc=wcc))
        run.train(2, attack)
        codes.append(attack.reconstruct(run.view))
    assert not torch.equal(*codes)


def test_an_attack_that_loads_a_state_continues_the_same(in_training):
    run = in_training(cut="l2")
    first = begun(run)
    run.train(2, first)
    second = begun(run)
    second.load({name: kept.clone() for name, kept in first.state().items()})
    run.train(2, first, second)
    assert is_same(first.state(), second.state())


def test_labels_are_told_in_the_vanilla_topology_only(in_training):
    run = in_training(topology="vanilla")
    attack = begun(run)
    run.train(1, attack)
    assert attack.guess().labels is None
    assert attack.sources(run.view) == ()
    with pytest.raises(AuditError, match="sdar infers no labels from 'targets'"):
        attack.infer(run.view, TARGETS)
    with pytest.raises(AuditError, match="the label of each of 3 images"):
        attack.labels_of([Code(torch.rand(3, 16, 8, 8))])


def test_a_shortened_run_says_so(in_training):
    run = in_training()
    attack = begun(run)
    run.train(1, attack)
    attack.reconstruct(run.view)
    assert any("1 steps of the published 20000" in note for note in attack.notes)


def test_before_the_first_step_there_is_nothing_to_guess(in_training):
    with pytest.raises(AuditError, match="no step yet"):
        begun(in_training()).guess()


@pytest.mark.parametrize("rate", [0.0, 0.2, 1.0])
def test_so_many_labels_are_wrong_as_the_rate_says(rate):
    labels = torch.zeros(20_000, dtype=torch.long)
    wrong = (flip(labels, rate, classes=10) != labels).double().mean()
    assert float(wrong) == pytest.approx(0.9 * rate, abs=0.01)

"""PCAT: a pseudo-client that learns from the server's checkpoints."""

import pytest
import torch

from lightsplit.attacks import TARGETS
from lightsplit.attacks.decoder import EFFORTS
from lightsplit.attacks.decoder_training import Effort
from lightsplit.attacks.pseudo_client import make_pseudo_head

UNTOLD = ("mean-image", "all-black")  # trivial attackers that know no label
TOPOLOGIES = ("u", "vanilla")
SMALL = {"width": 16, "lr": 3e-3, "closer_steps": 20}


@pytest.fixture(autouse=True)
def _little_effort(monkeypatch):
    little = Effort(most_pairs=300, steps=150, most_steps=150, width=16, blocks=0)
    monkeypatch.setitem(EFFORTS, "quick", little)


def watching(run, form="published", **options):
    return run.prepare("pcat", form=form, **(SMALL | options))


def states(run):
    return [side.state() for side in run.sides()]


@pytest.mark.slow
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_it_finds_images_in_codes_and_nothing_in_noise(
    in_training, trivial_error, topology
):
    run = in_training(topology=topology, cut="l2")
    attack = watching(run, "adaptive")
    run.train(100, attack)
    images = attack.reconstruct(run.view)
    assert run.error(images) < 0.5 * trivial_error(run, UNTOLD)
    if topology == "u":
        labels = attack.infer(run.view, TARGETS)
        assert float((labels == run.targets.labels).double().mean()) > 0.5
    run.noise = True
    noise = attack.reconstruct(run.view).clamp(0, 1)
    assert run.error(noise) > trivial_error(run, ("mean-image",))


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_victim_is_the_same_with_and_without_it(in_training, topology):
    alone, watched = (in_training(topology=topology) for _ in range(2))
    alone.train(2)
    watched.train(2, watching(watched))
    for one, other in zip(states(alone), states(watched), strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_only_the_pseudo_client_and_its_tail_learn(in_training):
    run = in_training()
    attack = watching(run)
    before = {n: w.clone() for n, w in attack.learners["client"].state().items()}
    run.train(1, attack)
    assert not torch.equal(
        before["head.0.weight"], attack.learners["client"].state()["head.0.weight"]
    )
    server = run.sides()[1].modules.state_dict()
    assert all(torch.equal(server[n], w) for n, w in attack.server.state_dict().items())


def test_a_batch_has_the_labels_of_the_victims(in_training):
    run = in_training(topology="vanilla")
    attack = watching(run)
    labels = torch.tensor([3, 3, 7, 0])
    found = attack._aligned(labels, attack._batches.next(4))
    assert torch.equal(found.labels, labels)
    known = run.knowledge.auxiliary
    for image, label in zip(found.images, labels, strict=True):
        same = (known.images == image).flatten(1).all(dim=1)
        assert (known.labels[same] == label).any()


def test_it_waits_for_a_late_start(in_training):
    run = in_training()
    attack = watching(run, late_start=2)
    before = attack.learners["client"].state()["head.0.weight"].clone()
    run.train(2, attack)
    assert torch.equal(before, attack.learners["client"].state()["head.0.weight"])
    assert attack.guess().labels.shape == (32,)
    assert attack.guess().images is None


def test_its_saved_state_is_everything(in_training):
    run = in_training()
    first, second = watching(run), watching(run)
    run.train(2, first)
    second.load(first.state())
    run.train(1, first, second)
    ours, theirs = first.state(), second.state()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("form", ["published", "adaptive"])
@pytest.mark.parametrize("codec", ["lightsplit-f", "learned-1x1", "topk"])
def test_every_kind_of_code_is_attacked_in_both_forms(
    in_training, monkeypatch, codec, form
):
    tiny = Effort(most_pairs=60, steps=2, most_steps=2, width=8, blocks=0)
    monkeypatch.setitem(EFFORTS, "quick", tiny)
    run = in_training(codec=codec, ratio=8.0)
    attack = watching(run, form, closer_steps=2)
    run.train(1, attack)
    assert attack.reconstruct(run.view).shape == run.targets.images.shape
    assert attack.decode(attack._latest).shape == (32, 1, 8, 8)
    run.train(1, attack)  # an inverse in between leaves the pseudo-client free to learn


@pytest.mark.parametrize("features", [(5, 3, 4), (17,), (6, 7)])
def test_a_pseudo_head_has_any_shape(features):
    head = make_pseudo_head((3, 9, 9), features, 4)
    assert head(torch.rand(2, 3, 9, 9)).shape == (2, *features)

"""An attack's abilities and options are read from its class and its constructor."""

import pytest
import torch

from lightsplit.attacks import (
    ATTACKS,
    InfersLabels,
    Observes,
    Reconstructs,
    capabilities,
    equip,
    find_attack,
)
from lightsplit.attacks.decoder import EFFORTS, DecoderAttack
from lightsplit.attacks.labels import LabelKMeans
from lightsplit.attacks.whitebox import WhiteBox
from lightsplit.errors import AuditError
from lightsplit.part_options import known_options

DECODER = {"most_pairs", "steps", "most_steps", "width", "blocks", "lr", "thorough"}
OPTIONS = {
    "decoder": DECODER,
    "exact-table": {"exemplar"},
    "exploit": {"steps", "starts"},
    "first-weights": {"client_secret", "decoder"},
    "label-classifier": {"most_pairs"},
    "labelled-decoder": DECODER,
    "refined-decoder": {*DECODER, "closer_steps", "learnt_steps", "near", "tv"},
    "fora": {"lr", "critic_lr", "discrepancy", "penalty", "width"},
    "fora-reference": {"steps", "lr"},
    "dlg": {"steps"},
    "idlg": {"steps"},
    "inverting-gradients": {"steps", "tv"},
    "ginver": {"steps", "lr", "tv"},
    "inverse-net": {"epochs", "lr"},
    "pcat": {"lr", "late_start", "coupling", "closer_steps", "width"},
    "rmle": {"steps", "lr", "tv", "l2"},
    "label-kmeans": {"restarts"},
    "linear": {"ridge"},
    "label-known": {"neighbours"},
    "membership-clusters": {"restarts"},
    "property-classifier": {"property", "most_pairs"},
    "prior-search": {"latent", "prior_steps", "steps", "trials"},
    "sdar": {
        *("simulator_lr", "decoder_lr", "simulator_weight", "decoder_weight"),
        *("flip_rate", "wcc", "width"),
    },
    "unsplit": {
        *("main_iterations", "inner_iterations", "carry_over"),
        *("lr", "variation", "magnitude"),
    },
    "row-inversion": {"steps", "lr"},
    "transcript-decoder": {*DECODER, "releases"},
    "whitebox": {"steps", "most_steps", "lr", "tv"},
}


class Two(Reconstructs, InfersLabels):
    """Gives black images and the label 0."""

    def reconstruct(self, view, progress=None):
        return torch.zeros(1)

    def infer(self, view, source):
        return torch.zeros(1)

    def score(self, view, source, labels):
        raise NotImplementedError


def test_an_attack_has_the_abilities_that_it_derives_from():
    assert capabilities(Two) == ("reconstructs", "infers labels")
    assert not issubclass(Two, Observes)


@pytest.mark.parametrize(
    ("name", "abilities"),
    [
        ("linear", ("reconstructs",)),
        ("label-norm", ("infers labels",)),
        ("fora", ("observes", "reconstructs")),
        ("sdar", ("observes", "reconstructs", "infers labels")),
    ],
)
def test_abilities_combine(name, abilities):
    assert capabilities(find_attack(name)) == abilities


@pytest.mark.parametrize("name", ATTACKS.names())
def test_every_attack_returns_images_or_labels_or_facts(name):
    found = set(capabilities(find_attack(name)))
    facts = {"infers membership", "infers a property"}
    assert {"reconstructs", "infers labels", *facts} & found


@pytest.mark.parametrize("name", ATTACKS.names())
def test_an_attacks_options_are_the_simple_arguments_it_needs_no_knowledge_for(name):
    attack = find_attack(name)
    known = known_options(attack, given=attack.given_arguments())
    assert set(known) == OPTIONS.get(name, set())


def test_options_that_are_not_given_are_those_of_the_budget(scene):
    known = scene().knowledge
    attack = equip(DecoderAttack, known, blocks=4, budget="short")
    assert attack.effort == EFFORTS["short"]._replace(blocks=4)
    assert equip(WhiteBox, known, most_steps=800).effort == (500, 800)
    assert equip(LabelKMeans, known).restarts == 4


@pytest.mark.parametrize(
    ("name", "option", "value", "least"),
    [
        ("decoder", "steps", 0, 1),
        ("decoder", "blocks", -1, 0),
        ("whitebox", "most_steps", 0, 1),
        ("whitebox", "tv", -0.1, 0),
        ("linear", "ridge", -1.0, 0),
        ("label-kmeans", "restarts", 0, 1),
        ("fora-reference", "steps", 0, 1),
    ],
)
def test_an_option_below_its_least_value_is_refused(scene, name, option, value, least):
    reason = f"{option!r} of {name} must be at least {least}, got {value}"
    with pytest.raises(AuditError, match=reason):
        equip(find_attack(name), scene().knowledge, **{option: value})


def test_a_ridge_that_is_given_is_the_one_that_is_used(scene):
    made = scene()
    free, tiny, huge = (
        equip(find_attack("linear"), made.knowledge, ridge=ridge).reconstruct(made.view)
        for ridge in (None, 1e-8, 1e6)
    )
    mean = made.knowledge.pairs.images.mean(dim=0)
    assert (huge - mean).abs().max() < 1e-2 < (free - mean).abs().max()
    assert not torch.equal(tiny, huge)

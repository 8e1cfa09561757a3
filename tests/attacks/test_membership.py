"""Membership and properties: chance on noise, more where there is something to find."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lightsplit.attacks import ATTACKS, Crowd, Exchange, ServerView, equip, fact_score
from lightsplit.attacks.fact_scores import true_positives_at
from lightsplit.codecs import Code
from lightsplit.errors import AuditError
from lightsplit.protocol import CodeMessage, OutputMessage

MEMBERS = torch.arange(100) < 50


def with_crowd(made, *, pull=1.0, noise=False):
    """Return the scene with a crowd whose members' outputs are nearer to centres."""
    torch.manual_seed(1)
    client, samples = made.knowledge.client, made.truth
    with torch.no_grad():
        values = client(samples)
    centres = 4 * torch.randn(10, 12)
    spread = torch.where(MEMBERS, pull, 1.0)[:, None]
    outputs = centres[made.labels] + spread * torch.randn(100, 12)
    if noise:
        values, outputs = torch.randn_like(values), torch.randn(100, 12)
    sent = CodeMessage(0, 0, Code(values), is_training=False)
    view = replace(
        made.view, exchanges=(Exchange(sent, OutputMessage(0, 0, Code(outputs))),)
    )
    told = torch.arange(0, 100, 2)
    crowd = Crowd(view, samples, told, MEMBERS[told])
    step = CodeMessage(0, 0, Code(values[MEMBERS]))
    trained = Exchange(step, OutputMessage(0, 0, Code(outputs[MEMBERS])))
    made.view = ServerView(view.contract, view.wire, (*view.exchanges, trained))
    made.knowledge = replace(made.knowledge, crowd=crowd)
    return made


def auc(made, name, source):
    attack = equip(ATTACKS.get(name), made.knowledge)
    found = attack.suspect(made.view, source)
    truth = MEMBERS if found.rows is None else MEMBERS[found.rows]
    return fact_score(found.scores, truth).figures["auc"]["mean"]


def test_members_near_their_centres_are_found(scene):
    made = with_crowd(scene(), pull=0.3)
    assert auc(made, "membership-clusters", "output") > 0.8


def test_a_suspected_sample_is_looked_up_among_the_recorded_codes(scene):
    made = with_crowd(scene())
    assert auc(made, "membership-match", "code") == 1.0


def test_outputs_that_differ_in_one_direction_tell_the_classifier_who_is_a_member(
    scene,
):
    made = with_crowd(scene())
    reply = made.knowledge.crowd.view.exchanges[0].reply
    reply.output.values[MEMBERS] += 5.0
    assert auc(made, "membership-known", "output") > 0.9
    assert auc(made, "membership-known", "samples") < 0.75


def test_sets_that_differ_by_themselves_show_in_the_samples(scene):
    made = with_crowd(scene())
    brighter = made.truth + 0.5 * MEMBERS[:, None, None, None]
    crowd = replace(made.knowledge.crowd, samples=brighter)
    made.knowledge = replace(made.knowledge, crowd=crowd)
    assert auc(made, "membership-known", "samples") > 0.9


def test_a_classifier_is_scored_on_samples_that_it_was_not_told_about(scene):
    made = with_crowd(scene())
    attack = equip(ATTACKS.get("membership-known"), made.knowledge)
    found = attack.suspect(made.view, "output")
    assert set(found.rows.tolist()) == set(range(1, 100, 2))
    assert len(found.scores) == 50


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("membership-clusters", "code"),
        ("membership-clusters", "output"),
        ("membership-known", "code"),
        ("membership-known", "output"),
    ],
)
def test_noise_gives_nothing_away(scene, name, source):
    made = with_crowd(scene(), noise=True)
    assert 0.25 < auc(made, name, source) < 0.75


def test_noise_matches_no_sample(scene):
    made = with_crowd(scene(), noise=True)
    assert 0.25 < auc(made, "membership-match", "code") < 0.75


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["brightness", "contrast", "balance"])
def test_a_raw_code_gives_properties_away_and_noise_does_not(scene, kind):
    figures = {}
    for noise in (False, True):
        made = scene(noise=noise)
        attack = equip(
            ATTACKS.get("property-classifier"), made.knowledge, property=kind
        )
        found = attack.suspect(made.view, "targets")
        truth = attack.holds(made.truth)
        figures[noise] = fact_score(found.scores, truth, threshold=0.0).figures
    assert figures[False]["auc"]["mean"] > 0.85
    assert figures[False]["balanced_accuracy"]["mean"] > 0.75
    assert 0.3 < figures[True]["auc"]["mean"] < 0.7


def test_an_unknown_property_is_refused(scene):
    with pytest.raises(AuditError, match="unknown property 'age'"):
        equip(ATTACKS.get("property-classifier"), scene().knowledge, property="age")


def test_perfect_reversed_and_blind_scores():
    truth = torch.arange(400) < 200
    perfect = fact_score(truth.double(), truth).figures
    assert {name: figure["mean"] for name, figure in perfect.items()} == {
        "auc": 1.0,
        "balanced_accuracy": 1.0,
        "tpr_at_1_fpr": 1.0,
    }
    assert fact_score(-truth.double(), truth).figures["auc"]["mean"] == 0.0
    torch.manual_seed(0)
    blind = fact_score(torch.rand(400), truth).figures
    for name, slack in (("auc", 0.1), ("balanced_accuracy", 0.1)):
        assert abs(blind[name]["mean"] - blind[name]["chance"]) < slack
        assert blind[name]["low"] < blind[name]["mean"] < blind[name]["high"]


@pytest.mark.parametrize("count", [20, 50, 300])
def test_the_chance_of_every_figure_is_what_blind_scores_reach(count):
    generator = torch.Generator().manual_seed(count)
    truth = torch.arange(2 * count) < count
    scores = torch.rand(2_000, 2 * count, generator=generator).double().numpy()
    reached = np.array([true_positives_at(one, truth.numpy()) for one in scores])
    told = fact_score(torch.rand(2 * count), truth).figures["tpr_at_1_fpr"]["chance"]
    assert abs(reached.mean() - told) < 5 * reached.std() / len(reached) ** 0.5


def test_equal_scores_in_the_middle_share_the_half_that_is_called_true():
    members = torch.tensor([1.0] * 90 + [0.0] * 10)
    others = torch.tensor([1.0] * 60 + [0.0] * 40)
    figures = fact_score(torch.cat([members, others]), torch.arange(200) < 100).figures
    expected = 0.5 + (0.9 - 0.6) * (100 / 150) / 2
    assert figures["balanced_accuracy"]["mean"] == pytest.approx(expected)


def test_of_one_kind_alone_nothing_can_be_told():
    with pytest.raises(AuditError, match="4 yes and 0 no"):
        fact_score(torch.rand(4), torch.ones(4).bool())


def test_at_most_one_in_a_hundred_others_passes_the_threshold():
    scores = np.concatenate([np.linspace(0, 1, 200), np.full(100, 0.9951)])
    yes = np.arange(300) >= 200
    assert true_positives_at(scores, yes) == 1.0  # one of 200 lies above
    assert true_positives_at(scores, yes, rate=0.0) == 0.0

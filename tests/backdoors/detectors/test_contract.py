"""The laws that every detector keeps."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.backdoors import DETECTORS, Evidence
from lightsplit.backdoors.evidence import KINDS
from lightsplit.errors import ConfigError

CLIENTS = 9


def make(name):
    return DETECTORS.create(name, clients=CLIENTS)


@pytest.fixture(params=DETECTORS.names())
def name(request):
    return request.param


def test_a_detector_knows_its_name_and_the_evidence_it_needs(name):
    detector = make(name)
    assert detector.name == name
    assert detector.needs <= set(KINDS)


@settings(deadline=None, max_examples=10)
@given(order=st.permutations(range(1, CLIENTS)), seed=st.integers(0, 20))
@pytest.mark.parametrize("name", DETECTORS.names())
def test_scores_do_not_change_when_clients_are_renamed(
    field, make_piece, name, order, seed
):
    known = field(CLIENTS, seed=seed, malicious=[3])
    renamed = [known[0], *(known[place] for place in order)]  # 0 is trusted by some
    renamed = [
        make_piece(client, one.code, one.weights[0])
        for client, one in enumerate(renamed)
    ]
    scores = make(name).judge(known).scores
    expected = [scores[0], *(scores[place] for place in order)]
    assert make(name).judge(renamed).scores == pytest.approx(
        expected, rel=1e-6, abs=1e-9
    )


@pytest.mark.parametrize("value", [0.0, 1.0, -3.5])
def test_a_constant_stream_gives_no_nan_and_flags_nobody(make_piece, name, value):
    vector, before = torch.full((50,), value).double(), torch.zeros(50).double()
    detector = make(name)
    for _ in range(3):
        verdict = detector.judge(
            [make_piece(c, vector, before) for c in range(CLIENTS)]
        )
        assert all(map(math.isfinite, verdict.scores))
        if value or name != "fltrust":
            assert verdict.flagged == ()


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_clients_are_not_judged_but_do_not_break_it(field, name, count):
    verdict = make(name).judge(field(CLIENTS)[:count])
    assert len(verdict.scores) == count
    assert all(map(math.isfinite, verdict.scores))


def test_a_detector_continues_from_its_state(field, name):
    used, fresh = make(name), make(name)
    used.judge(field(CLIENTS, seed=1))
    fresh.load(used.state())
    later = field(CLIENTS, seed=2)
    assert used.judge(later) == fresh.judge(later)


def test_evidence_that_is_missing_is_named(name):
    with pytest.raises(ConfigError, match="client 0"):
        make(name).judge([Evidence(client) for client in range(CLIENTS)])


@pytest.mark.parametrize(
    "detector", ["cosine-code", "cosine-output", "fltrust", "safesplit"]
)
@pytest.mark.parametrize("seed", range(5))
def test_one_blatant_client_is_ranked_first(field, detector, seed):
    verdict = make(detector).judge(field(CLIENTS, seed=seed, malicious=[4]))
    assert max(verdict.scores) == verdict.scores[4]
    if detector != "fltrust":  # its own line is a cosine below 0
        assert 4 in verdict.flagged

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightsplit.backdoors import score_detection

CLIENTS = st.sets(st.integers(0, 9))


@given(flagged=CLIENTS, malicious=CLIENTS)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(flagged, malicious):
    precision, recall, f1 = score_detection(flagged, malicious)
    if not (flagged and malicious):
        assert f1 in (None, 0)
    elif precision + recall == 0:
        assert f1 == 0
    else:
        assert f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_flagging_exactly_the_malicious_is_perfect():
    assert score_detection({2, 5}, {5, 2}) == (1, 1, 1)


def test_flagging_nobody_where_nobody_is_malicious_has_no_score():
    assert score_detection((), ()) == (None, None, None)


def test_missing_the_only_malicious_client_scores_zero():
    assert score_detection((), {3}) == (None, 0, 0)


def test_a_false_alarm_scores_zero():
    assert score_detection({3}, ()) == (0, None, 0)

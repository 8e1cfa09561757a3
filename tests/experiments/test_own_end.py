"""A client whose run has ended does not wait for a server that is away."""

import pytest

from lightsplit.errors import TransportError
from lightsplit.experiments import own_end
from lightsplit.experiments.own_end import OwnEnd

AWAY = TransportError("nobody is there")


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(own_end, "time", clock)
    return clock


def test_what_was_kept_is_found_for_the_same_experiment_alone(tmp_path):
    OwnEnd(tmp_path, "epochs = 1").keep({"steps": 4})
    assert OwnEnd(tmp_path, "epochs = 1").figures == {"steps": 4}
    assert OwnEnd(tmp_path, "epochs = 2").figures is None
    assert OwnEnd(None, "epochs = 1").figures is None


def test_a_new_turn_makes_it_forgotten(tmp_path):
    end = OwnEnd(tmp_path, "x")
    end.keep({"steps": 4})
    end.forget()
    assert end.figures is None
    assert OwnEnd(tmp_path, "x").figures is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"experiment": "x"}', "\xff"])
def test_a_damaged_file_counts_for_nothing(tmp_path, text):
    (tmp_path / "end.json").write_text(text, encoding="latin-1")
    assert OwnEnd(tmp_path, "x").figures is None


def test_it_waits_a_little_and_then_no_more(tmp_path, clock):
    told = []
    OwnEnd(tmp_path, "x").keep({"steps": 4})
    tell = OwnEnd(tmp_path, "x", patience_seconds=5).patient(told.append)
    tell(AWAY)
    clock.now = 4.9
    tell(AWAY)
    assert len(told) == 2
    clock.now = 5.0
    with pytest.raises(TransportError):
        tell(AWAY)


def test_a_client_with_turns_to_take_waits_on(tmp_path, clock):
    told = []
    tell = OwnEnd(tmp_path, "x").patient(told.append)
    for clock.now in (0.0, 100.0, 500.0):
        tell(AWAY)
    assert len(told) == 3

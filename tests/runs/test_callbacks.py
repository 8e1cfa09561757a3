"""Callbacks are told everything once, and cannot break a run that has begun."""

import math

import pytest

from lightsplit import Callback, RunStart, scalars
from lightsplit.errors import RunError
from lightsplit.runs import Callbacks

RUN = RunStart("train", "a-run", None, {"codec": "raw"})


class Told(Callback):
    def __init__(self, fails_at=""):
        self.events = []
        self.fails_at = fails_at

    def _note(self, name, value):
        if name == self.fails_at:
            raise KeyError(name)
        self.events.append((name, value))

    def start(self, run):
        self._note("start", run)

    def log(self, line):
        self._note("log", line)

    def end(self, *, is_finished):
        self._note("end", is_finished)


def test_a_callback_is_told_start_lines_and_end_in_order():
    told = Told()
    with Callbacks([told]) as callbacks:
        callbacks.start(RUN)
        callbacks.start(RUN)  # a second start is the same run
        callbacks.log({"step": 1})
        callbacks.is_finished = True
    assert told.events == [("start", RUN), ("log", {"step": 1}), ("end", True)]


def test_a_run_that_breaks_off_is_not_finished():
    told = Told()
    callbacks = Callbacks([told])
    callbacks.start(RUN)
    with pytest.raises(ZeroDivisionError), callbacks:
        raise ZeroDivisionError
    assert told.events == [("start", RUN), ("end", False)]


def test_a_callback_that_was_not_started_is_not_ended():
    told = Told()
    with Callbacks([told]):
        pass
    assert told.events == []


def test_a_callback_that_cannot_start_ends_the_run_in_one_sentence():
    first, last = Told(), Told()
    sentence = "^Told cannot start: KeyError: 'start'$"
    with (
        pytest.raises(RunError, match=sentence),
        Callbacks([first, Told("start"), last]) as callbacks,
    ):
        callbacks.start(RUN)
    assert first.events == [("start", RUN), ("end", False)]
    assert last.events == []


def test_a_callback_that_fails_later_is_left_out_and_the_others_go_on(caplog):
    broken, whole = Told("log"), Told()
    with Callbacks([broken, whole]) as callbacks:
        callbacks.start(RUN)
        callbacks.log({"step": 1})
        callbacks.log({"step": 2})
    assert [name for name, _ in broken.events] == ["start"]
    assert [name for name, _ in whole.events] == ["start", "log", "log", "end"]
    (warning,) = caplog.messages
    assert warning == "Told is left out from now on: KeyError: 'log'"


def test_a_callback_may_leave_out_what_it_does_not_need():
    with Callbacks([Callback()]) as callbacks:
        callbacks.start(RUN)
        callbacks.log({"step": 1})


def test_the_numbers_of_a_line_have_names():
    line = {
        "epoch": 1,
        "step": 12,
        "train_loss": 0.5,
        "test_loss": 0.25,
        "test_accuracy": None,  # JSON has no word for a number that is not finite
        "client_figures": [{"accuracy": 0.5}, {"accuracy": 1.0}],
        "bytes": 1000,
        "objectives": {"wcc": math.pi},
    }
    assert scalars(line) == {
        "train/loss": 0.5,
        "test/loss": 0.25,
        "bytes/total": 1000.0,
        "objectives/wcc": math.pi,
        "client-0/accuracy": 0.5,
        "client-1/accuracy": 1.0,
    }


def test_one_head_for_all_has_no_figures_per_client():
    line = {"step": 1, "client_figures": [{"accuracy": 0.5}]}
    assert scalars(line) == {}

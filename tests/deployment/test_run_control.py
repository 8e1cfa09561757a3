"""The order of messages, the waking of clients, and the end of a run."""

import pytest

from lightsplit.deployment.run_control import RunControl
from lightsplit.errors import ConfigError, ProtocolError, RunError
from lightsplit.runs.plan import RunPlan


@pytest.fixture
def make(net, tmp_path):
    def make(**options):
        run = net.make_run(tmp_path, **options)
        return RunControl(run, run.members, run.lock)

    return make


def test_only_the_newest_connection_of_a_client_may_speak(net, make):
    control = make()
    member, peer = control.roster[0], net.make_peer()
    with pytest.raises(ProtocolError, match="cut off") as caught:
        control.check_connected(member, peer)
    assert caught.value.code == "stale-turn"
    member.peer = peer
    control.check_connected(member, peer)
    with pytest.raises(
        ProtocolError, match="a newer connection under the name 'alice'"
    ):
        control.check_connected(member, net.make_peer())


def test_only_the_current_assignment_may_be_worked_on(make):
    control = make()
    assignment = control.run.turns.current
    control.check_current(assignment)
    control.run.turns.complete()
    with pytest.raises(ProtocolError, match="turn 0 was revoked"):
        control.check_current(assignment)


def test_a_run_begins_when_every_client_is_ready(make):
    control = make(has_begun=False)
    control.roster[1].batches = 0
    control.begin_if_ready()
    assert not control.run.turns.is_begun
    control.roster[1].batches = 1
    control.begin_if_ready()
    assert control.run.turns.is_begun


def test_an_idle_run_stops_at_once_and_a_busy_one_does_not(net, make):
    control = make()
    control.wants_stop = True
    control.roster[0].peer = net.make_peer()
    with control.lock:
        control.stop_if_idle()
        assert not control.is_over
        control.disconnect(control.roster[0])
    assert control.is_over
    assert control.may_close


def test_the_open_step_of_a_client_that_left_is_undone(net, make):
    control = make()
    server = control.run._steps._server
    control.run.answer(control.run.turns.current, net.code(0, 0))
    assert server.open == (0, 0)
    control.undo(control.roster[1])  # it has no turn
    assert server.open == (0, 0)
    control.undo(control.roster[0])
    assert server.open is None


def test_the_server_stays_until_every_client_knows_of_the_end(make):
    control = make(plan=RunPlan(step_timeout_seconds=60))
    control.run.progress.steps = control.run.state.schedule.total_steps
    control.run._finish_if_over()
    with control.lock:
        control.pass_on()
    assert control.is_over
    assert not control.may_close
    for member in control.roster:
        member.is_told = True
    assert control.may_close


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(28, "No space left", "/disk/x"), "/disk/x: No space left"),
        (RunError("the weights are gone"), "the weights are gone"),
        (ConfigError("beyond the 5 asked for"), "cannot go on: beyond the 5"),
        (KeyError("a\nb"), "KeyError: "),
    ],
)
def test_an_error_of_the_server_ends_the_run_with_one_sentence(net, make, error, text):
    control = make()
    with control.lock:
        control.fail(error)
    assert control.is_over
    assert control.may_close
    assert text in str(control.failure)
    assert "\n" not in str(control.failure)
    with control.lock:
        control.fail(RunError("a second one"))
    assert text in str(control.failure)

"""No client can hold a turn for ever, by talking or by silence."""

import signal

import pytest
from lab.lines import Caller
from lab.processes import wait_until
from lab.runs import NAMES, Network

from lightsplit.errors import ExchangeError, RunError


def hold_the_turn(network, say):
    """Take Carol's turn and talk until the server has had enough."""
    with Caller(network, "carol") as caller:
        caller.enter()
        caller.call(caller.code(0))
        while "server" not in network.errors:
            caller.call(say(caller))


@pytest.mark.parametrize(
    "say",
    [lambda c: c.code(0, is_training=False), lambda c: c.code(0)],
    ids=["evaluation without end", "the same message again and again"],
)
def test_messages_do_not_prolong_a_turn(say, tmp_path):
    plan = {"step_timeout_seconds": 20.0, "turn_timeout_seconds": 12.0}
    with Network(tmp_path, plan=plan) as network:
        for name in ("alice", "bob"):
            network.join(name, give_up_seconds=1.0)
        with pytest.raises(ExchangeError) as told:
            hold_the_turn(network, say)
        assert told.value.code in ("shutting-down", "interrupted", "stale-turn")
        wait_until(lambda: "server" in network.errors, "the end of the run")
    assert isinstance(network.errors["server"], RunError)
    assert "carol has not handed in turn 2 within 12 sec" in str(
        network.errors["server"]
    )


def test_the_run_does_not_wait_without_end_for_a_client_that_has_gone(make_cluster):
    cluster = make_cluster(
        {"epochs": 200}, serve=["--turn-timeout-seconds", 15], join=["--no-report"]
    )
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for name in NAMES:
        cluster.start_client(name)
    for name in NAMES:
        wait_until(lambda n=name: f"{n} has come" in cluster.server.text, name)
    cluster.clients["bob"].signal(signal.SIGKILL)
    assert cluster.server.wait() == 1
    assert "bob has not handed in turn" in cluster.server.text
    assert "Traceback" not in cluster.server.text

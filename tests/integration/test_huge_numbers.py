"""One finite message that would destroy the weights, sent to a server's process."""

import pytest
from lab.faults import left_behind
from lab.lines import Caller, door
from lab.runs import NAMES, assert_same_weights, reference

from lightsplit.errors import RemoteError


def huge_code(caller):
    code = caller.code(0)
    code.code.values[0, 0] = 3e38
    return code


def huge_gradient(caller):
    assert caller.call(caller.code(0)).kind == "output"
    gradient = caller.gradient(0)
    gradient.gradient[0, 0] = 3e38
    return gradient


@pytest.mark.parametrize("make_message", [huge_code, huge_gradient])
def test_a_huge_number_is_refused_and_the_run_is_what_it_would_have_been(
    make_cluster, make_message
):
    cluster = make_cluster({}, serve=["--checkpoint-every", 1])
    port = cluster.start_server()
    cluster.ports = dict.fromkeys(NAMES, port)
    for name in ("alice", "bob"):
        cluster.start_client(name)
    with Caller(door(port), "carol") as carol:
        carol.enter()
        with pytest.raises(RemoteError, match="beyond the contract's norm limit"):
            carol.call(make_message(carol))
    cluster.start_client("carol")
    assert [cluster.clients[name].wait() for name in NAMES] == [0, 0, 0]
    assert cluster.server.wait() == 0, cluster.server.text
    assert_same_weights(left_behind(cluster), reference())

"""Whoever asks for plain text is told what that means, by the server and by a client.

The server listens on every address and the clients dial the same one, which the system
takes for this machine: to LightSplit it is an address beyond it.
"""

from lab.faults import left_behind
from lab.processes import options
from lab.runs import NAMES, assert_same_weights, reference

EVERYWHERE = "0.0.0.0"  # noqa: S104  the case that the warning is for
TOLD = (
    "WARNING",
    "is served in plain text",
    "Anybody on the path can read and change all messages",
    "anybody can join under any name",
)


def warnings(text):
    return [part for part in TOLD if part in " ".join(text.split())]


def test_without_the_option_a_server_refuses_to_listen_in_plain_text(run):
    text = run("serve", *options(), "--address", f"{EVERYWHERE}:0", code=1)
    assert "needs certificates" in text
    assert "WARNING" not in text


def test_a_server_and_its_clients_print_that_nothing_is_encrypted(
    make_cluster, zygote, tmp_path
):
    serve = ["--address", f"{EVERYWHERE}:0", "--insecure"]
    cluster = make_cluster({}, serve=serve)
    line = ["--address", f"{EVERYWHERE}:{cluster.start_server()}", "--insecure"]
    cluster.ports = dict.fromkeys(NAMES, 0)
    for name in NAMES:
        words = [*cluster.join_command(name), *line]
        cluster.clients[name] = zygote.start(tmp_path / f"{name}.log", *words)
    assert [cluster.clients[name].wait() for name in NAMES] == [0, 0, 0]
    assert cluster.server.wait() == 0, cluster.server.text
    for who, process in cluster.processes.items():
        assert warnings(process.text) == [*TOLD], (who, process.text)
    assert_same_weights(left_behind(cluster), reference())


def test_on_this_machine_alone_there_is_nothing_to_warn_of(make_cluster):
    cluster = make_cluster({}, serve=["--insecure"], join=["--insecure"])
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for name in NAMES:
        cluster.start_client(name)
    assert [cluster.clients[name].wait() for name in NAMES] == [0, 0, 0]
    assert not any(warnings(process.text) for process in cluster.processes.values())

"""What must not happen, tried on servers and clients that are processes of their own.

Carol's certificate is in wrong hands: everything is tried under her name, and by a
stranger whom the same authority has signed. Then the true Carol comes, and the run is
what it would have been.
"""

import contextlib
import signal
import threading
import time

import grpc
import pytest
import torch
from lab.faults import left_behind
from lab.lines import Caller, door
from lab.misdeeds import assert_each_is_refused
from lab.processes import wait_until
from lab.runs import NAMES, assert_same_weights, build_job, reference
from test_garbage import GROWTH_BYTES, resident_bytes

from lightsplit.codecs import Code
from lightsplit.deployment.prediction import predicting
from lightsplit.errors import ContractError, ExchangeError, RemoteError
from lightsplit.protocol import CodeMessage
from lightsplit.protocol.control import Hello, Ready
from lightsplit.protocol.frames import to_frames
from lightsplit.transports.certificates import CertificateFolder
from lightsplit.transports.credentials import channel_credentials
from lightsplit.transports.grpc_server import SESSION

SILENT = 30  # more than the server has room for
STREAMS = 6


@pytest.fixture
def begin(make_cluster):
    """Return what starts a server, and Alice and Bob; Carol's place is free."""

    def begin(settings, *, serve=(), join=()):
        cluster = make_cluster(settings, serve=serve, join=join)
        cluster.port = cluster.start_server()
        cluster.ports = dict.fromkeys(NAMES, cluster.port)
        for name in ("alice", "bob"):
            cluster.start_client(name)
        return cluster

    return begin


def assert_ends_like_one_process(cluster, **settings):
    cluster.start_client("carol")
    assert [cluster.clients[name].wait() for name in NAMES] == [0, 0, 0]
    assert cluster.server.wait() == 0, cluster.server.text
    assert "Traceback" not in cluster.server.text
    assert_same_weights(left_behind(cluster), reference(**settings))


@pytest.fixture
def stranger(certificates):
    """A name of the same authority that is not on the server's list."""
    folder = CertificateFolder(certificates)
    if not folder.client("stranger").exists():
        folder.make_client("stranger")
    return "stranger"


def test_whatever_carol_and_a_stranger_try_is_refused_and_changes_nothing(
    begin, certificates, stranger
):
    certs = ["--certs", certificates]
    cluster = begin({}, serve=certs, join=[*certs, "--give-up-seconds", 300])
    network = door(cluster.port, certificates)
    with contextlib.ExitStack() as silence:
        for name in (stranger, "carol"):
            for _ in range(SILENT):
                silence.enter_context(Caller(network, name))
        unknown = pytest.raises(ExchangeError, match="'stranger' is not among the 3")
        with Caller(network, stranger) as caller, unknown:
            caller.hello()
        assert_each_is_refused(network)  # her own silent streams give way
        before = resident_bytes(cluster.server.pid)
        for _ in range(3):
            ask_for_memory(network)
        assert resident_bytes(cluster.server.pid, "VmHWM") - before < GROWTH_BYTES
        assert_ends_like_one_process(cluster)


def ask_for_memory(network):
    """Announce much, nest deeply, and compress."""
    nested = pytest.raises(ContractError, match="not a contract")
    with Caller(network, "carol") as caller, nested:
        caller.hello(contract="[" * 50_000)
    with Caller(network, "carol") as caller:
        caller.hello()
        with pytest.raises(ContractError, match="had 2 batches per epoch"):
            caller.call(Ready(2**20))
    hello = to_frames(Hello("carol", " " * 60_000))[0]
    endpoint = network.endpoint("carol")
    packed = grpc.secure_channel(
        endpoint.address,
        channel_credentials(endpoint.tls),
        compression=grpc.Compression.Gzip,
    )
    with packed as line, pytest.raises(grpc.RpcError) as refused:
        list(line.stream_stream(SESSION)(iter([hello])))
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def overflowing(caller):
    """A gradient within the norm limit whose reply is too large for 16 bits."""
    assert caller.call(caller.code(0)).kind == "output"
    gradient = caller.gradient(0)
    gradient.gradient[0] = 4e4
    return gradient


def uncounted_labels(caller):
    values = torch.full((16, caller.network.contract.code_size), 0.5)
    return CodeMessage(2, 0, Code(values), torch.full((16,), -100))


REFUSED = {  # settings, what Carol says, what she is told
    "a reply beyond its format": (
        {"format": "code_gradient=fp16"},
        overflowing,
        "fp16 holds numbers up to 65504",
    ),
    "labels that count for nothing": (
        {"topology": "vanilla"},
        uncounted_labels,
        "finite",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_step_that_is_refused_is_not_applied(what, begin):
    settings, make, text = REFUSED[what]
    cluster = begin(settings)
    with Caller(door(cluster.port, **settings), "carol") as carol:
        carol.enter()
        message = make(carol)
        with pytest.raises(RemoteError, match=text):
            carol.call(message)
    assert_ends_like_one_process(cluster, **settings)


def test_messages_do_not_prolong_a_turn_and_the_run_can_be_resumed(begin):
    cluster = begin({}, serve=["--turn-timeout-seconds", 15, "--checkpoint-every", 1])
    with Caller(door(cluster.port), "carol") as carol:
        carol.enter()
        with pytest.raises(ExchangeError) as told:
            talk_without_end(carol)
    assert told.value.code in ("shutting-down", "interrupted", "stale-turn")
    assert cluster.server.wait() == 1
    assert "carol has not handed in turn 2 within 15 sec" in cluster.server.text
    for name in ("alice", "bob"):
        cluster.clients[name].signal(9)
    cluster.serve = ["--checkpoint-every", 1]  # the true Carol has more time
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for name in ("alice", "bob"):
        cluster.start_client(name)
    assert_ends_like_one_process(cluster)


def talk_without_end(caller):
    while True:
        caller.call(caller.code(0, is_training=False))


def test_a_server_that_stops_in_the_middle_of_a_turn_does_not_say_that_it_saved(begin):
    settings = {"turn_steps": 2}
    cluster = begin(settings, serve=["--step-timeout-seconds", 3])
    with Caller(door(cluster.port, **settings), "carol") as carol:
        carol.enter()
        carol.call(carol.code(0))
        carol.call(carol.gradient(0))
        cluster.server.signal(signal.SIGTERM)
        assert cluster.server.wait() == 128 + signal.SIGTERM
    assert "stopped in the middle of a turn, which is not saved" in cluster.server.text
    assert "stopped and saved" not in cluster.server.text
    for name in ("alice", "bob"):
        cluster.clients[name].signal(signal.SIGKILL)
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for name in ("alice", "bob"):
        cluster.start_client(name)
    assert_ends_like_one_process(cluster, **settings)


def test_refused_messages_do_not_prolong_a_round_and_the_run_can_be_resumed(begin):
    settings = {"rounds": "parallel", "heads": "private"}
    cluster = begin(settings, serve=["--turn-timeout-seconds", 8])
    network = door(cluster.port, **settings)
    spoilt = []

    def is_over():
        with contextlib.suppress(ExchangeError):
            spoil_the_round(network)
            spoilt.append(True)
        return cluster.server.code is not None

    wait_until(is_over, "the end of the run")
    assert len(spoilt) > 1
    assert cluster.server.wait() == 1
    said = " ".join(cluster.server.text.split())
    assert "round 0 was not over within 8 seconds: refused messages of carol" in said
    assert said.count("error:") == 1
    for name in ("alice", "bob"):
        cluster.clients[name].signal(9)
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for name in ("alice", "bob"):
        cluster.start_client(name)
    assert_ends_like_one_process(cluster, **settings)


def spoil_the_round(network):
    """Send a gradient within the limit that makes the weights' gradient exceed it."""
    with Caller(network, "carol") as carol:
        carol.enter()
        code = carol.code(0)
        code.code.values.fill_(9e5)
        carol.call(code)
        gradient = carol.gradient(0)
        gradient.gradient.fill_(9e3)
        with pytest.raises(RemoteError, match="norm limit"):
            carol.call(gradient)


def test_predictions_before_the_first_turn_are_refused(begin, run):
    cluster = begin({})
    command = cluster.join_command("alice")
    at = command.index("--state")
    words = ["predict", *command[1:at]]
    assert "predict after the first turn" in run(*words, code=1)
    assert_ends_like_one_process(cluster)


def test_training_goes_on_beside_streams_that_predict_without_a_pause(begin):
    settings = {"epochs": 1000, "heads": "private", "eval_every": 1000}
    cluster = begin(settings)
    cluster.start_client("carol")
    before = seconds_of_turns(cluster, 10, 30)
    with asking(door(cluster.port, **settings), settings) as answers:
        wait_until(lambda: sum(answers) > STREAMS, "the first answers")
        busy = min(seconds_of_next_turns(cluster, 20) for _ in range(3))
    assert sum(answers) > 2 * STREAMS
    quiet = max(before, seconds_of_next_turns(cluster, 20))  # others may work too
    assert busy < 8 * quiet  # without a share of its own, training took twenty times


def turns(cluster):
    log = cluster.folder / "alice" / "turns.jsonl"
    return log.read_text().count('"done"') if log.exists() else 0


def seconds_of_turns(cluster, first, last):
    wait_until(lambda: turns(cluster) >= first, "turns")
    began = time.monotonic()
    wait_until(lambda: turns(cluster) >= last, "more turns")
    return time.monotonic() - began


def seconds_of_next_turns(cluster, count):
    now = turns(cluster)
    return seconds_of_turns(cluster, now, now + count)


@contextlib.contextmanager
def asking(network, settings):
    """Ask for predictions in several streams until the block ends."""
    end, answers = threading.Event(), [0] * STREAMS
    jobs = [build_job(**settings) for _ in range(STREAMS)]

    def ask(number):
        name = NAMES[number % len(NAMES)]
        client = jobs[number].trainer.clients[NAMES.index(name)]
        inputs = next(iter(jobs[number].trainer._test))[0]
        endpoint = network.endpoint(name)
        with predicting(client, network.contract, endpoint, name=name):
            while not end.is_set():
                client.predict(inputs)
                answers[number] += 1

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(STREAMS)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        end.set()
        for thread in threads:
            thread.join()

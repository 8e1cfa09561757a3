"""A server that lies: the client ends with one sentence and loses nothing."""

import contextlib
import re
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
import torch
from lab.runs import build_job

from lightsplit.codecs import Code
from lightsplit.deployment.network import make_expectation
from lightsplit.errors import ProtocolError
from lightsplit.protocol import CodeMessage, Message, OutputMessage, Reader
from lightsplit.protocol.control import Grant, Hello, Ready, Welcome
from lightsplit.protocol.frames import to_frames
from lightsplit.transports.grpc_server import MESSAGE_OPTIONS, SESSION, SessionServer

SETTINGS = {"heads": "private", "epochs": 1}
KEPT = "side-00000005.safetensors"


class Liar:
    """Answers like a server, but for what ``lies`` says to a kind of message."""

    def __init__(self, lies):
        self.lies = lies
        self.welcomed = 0

    def session(self, _peer):
        return self

    def handle(self, message: Message):
        lie = self.lies.get(type(message))
        if lie is not None:
            return lie(message)
        if isinstance(message, Hello):
            self.welcomed += 1
            return Welcome(0, "run")
        return Grant(0, 1, 0)

    def replied(self):
        pass

    def close(self):
        pass


@contextlib.contextmanager
def listening(liar):
    job = build_job(**SETTINGS)
    expectation = make_expectation(job.contract, job.trainer.server)
    server = SessionServer(
        liar.session, lambda: Reader(expectation), credentials=None, max_sessions=4
    )
    port = server.bind("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop()


def output(rows, *, step=0, client=0):
    width = build_job(**SETTINGS).contract.output_shape
    return OutputMessage(client, step, Code(torch.zeros(rows, *width)))


def refuse(text):
    def lie(_message):
        raise ProtocolError(text)

    return lie


class TerminalError(ProtocolError):
    """A refusal whose text is not made printable at the server."""

    def __str__(self):
        return "no \x1b[2J\x1b]0;owned\x07 way"


def control_the_terminal(_message):
    raise TerminalError("x")


LIES = {
    "that an old side may go": (
        {Ready: lambda _m: Grant(0, 1, 0, oldest_step=2**62)},
        "an oldest step up to its first step 0",
    ),
    "that a turn is endless": ({Ready: lambda _m: Grant(0, 2**62, 0)}, "at most 1 s"),
    "that a reply is another's": (
        {CodeMessage: lambda _m: output(16, client=1)},
        "got one to step 0 of client 1",
    ),
    "that a reply is of another step": (
        {CodeMessage: lambda _m: output(16, step=3)},
        "got one to step 3",
    ),
    "that a batch is shorter": (
        {CodeMessage: lambda _m: output(7)},
        "expected an output of 16 rows, got 7",
    ),
    "with control sequences": ({Hello: control_the_terminal}, "owned"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_one_sentence_and_nothing_is_lost(lie, make_cluster):
    lies, text = LIES[lie]
    cluster = make_cluster(SETTINGS)
    kept = cluster.folder / "alice" / KEPT
    kept.parent.mkdir()
    kept.write_bytes(b"a side of an earlier turn")
    with listening(Liar(lies)) as port:
        cluster.ports = {"alice": port}
        client = cluster.start_client("alice")
        assert client.wait() == 1, client.text
    assert text in " ".join(client.text.split())
    assert client.text.count("error:") == 1
    assert "Traceback" not in client.text
    assert "\x1b[2J" not in client.text
    assert "\x07" not in client.text
    assert kept.read_bytes() == b"a side of an earlier turn"


LONG_BYTES = 256 * 2**20  # a small model's side has less than 32 MiB
GROWTH_BYTES = 64 * 2**20


@contextlib.contextmanager
def answering(frames_of):
    """Answer each kind of message with frames that no true server would send."""

    def answer(requests, _context):
        reader = Reader()
        for frame in requests:
            message = reader.feed(frame)
            yield from frames_of[type(message)]

    handler = grpc.stream_stream_rpc_method_handler(answer)
    service, method = SESSION.strip("/").split("/")
    pool = ThreadPoolExecutor(2)
    server = grpc.server(pool, options=MESSAGE_OPTIONS)
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(service, {method: handler})]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()
        pool.shutdown()


def in_its_welcome(side):
    return {Hello: list(to_frames(Welcome(0, "run", 1, side)))}


def in_its_grant(side):
    grant = Grant(1, 2**62, 0, side=side)
    return {Hello: to_frames(Welcome(0, "run")), Ready: list(to_frames(grant))}


@pytest.mark.parametrize("heads", ["shared", "private"])
@pytest.mark.parametrize("where", [in_its_welcome, in_its_grant])
@pytest.mark.parametrize("is_sent", [False, True], ids=["announced", "sent"])
def test_a_side_longer_than_the_contracts_takes_no_memory(
    is_sent, where, heads, make_cluster
):
    cluster = make_cluster({**SETTINGS, "heads": heads})

    def end_of_client(frames_of):
        with answering(frames_of) as port:
            cluster.ports = {"alice": port}
            client = cluster.start_client("alice")
            assert client.wait(60) == 1, client.text
        return client.peak_bytes, client.text

    usual, before = end_of_client(in_its_grant(b""))  # a turn that is too long
    assert "at most 1 steps" in before
    frames = where(bytes(LONG_BYTES))
    kind = max(frames, key=lambda kind: len(frames[kind]))
    if not is_sent:
        frames[kind] = frames[kind][:1]
    peak, said = end_of_client(frames)
    said = " ".join(said.removeprefix(before).split())
    assert re.search(
        r"error: (welcome|grant): expected at most \d+ bytes, got 26", said
    )
    assert said.count("error:") == 1
    assert "Traceback" not in said
    assert peak - usual < GROWTH_BYTES


def test_a_server_that_breaks_every_line_is_not_asked_without_a_pause(make_cluster):
    cluster = make_cluster(SETTINGS, join=["--give-up-seconds", 4])
    liar = Liar({CodeMessage: lambda _m: None})  # the end of the stream
    with listening(liar) as port:
        cluster.ports = {"alice": port}
        client = cluster.start_client("alice")
        assert client.wait() == 1, client.text
    assert 2 <= liar.welcomed <= 10

"""A client that sends any message it is given, legal or not."""

import contextlib
from types import SimpleNamespace

import grpc
import torch

from lab.runs import build_job
from lightsplit.codecs import Code
from lightsplit.deployment.endpoint import Endpoint, open_line
from lightsplit.deployment.network import make_expectation
from lightsplit.protocol import CodeMessage, OutputGradient
from lightsplit.protocol._pb import lightsplit_pb2 as pb
from lightsplit.protocol.control import Hello, Ready, Refusal
from lightsplit.protocol.frames import Reader, error_of, from_frames, to_frames
from lightsplit.transports.credentials import TlsFiles
from lightsplit.transports.grpc_server import SESSION

BATCHES = 2  # of each client in lab.runs.SMALL


class Caller:
    """One connection to the server of a ``Network``, spoken by hand."""

    def __init__(self, network, name="alice", **options):
        self.name = name
        self.network = network
        self.line = open_line(
            options.get("endpoint") or network.endpoint(name), network.expectation
        )

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.line.close()

    def call(self, message):
        return self.line.call(message)

    def post(self, message):
        """Send a message and do not wait for the answer."""
        for frame in to_frames(message):
            self.line._stream.send(frame)

    def take(self):
        """Return an answer that is still owed."""
        message = self.line._reader.feed(self.line._next_frame())
        if isinstance(message, Refusal):
            raise error_of(message)
        return message

    def hello(self, *, name=None, contract=None, purpose="train"):
        text = self.network.contract.to_json() if contract is None else contract
        return self.call(Hello(name or self.name, text, purpose))

    def enter(self):
        """Say hello and wait for a turn; return the grant."""
        self.index = self.hello().index
        return self.call(Ready(BATCHES))

    def code(self, step, *, client=None, rows=16, **more):
        values = torch.full((rows, self.network.contract.code_size), 0.5)
        index = self.index if client is None else client
        return CodeMessage(index, step, Code(values), **more)

    def gradient(self, step, *, client=None, rows=16):
        values = torch.full((rows, *self.network.contract.output_shape), 1e-3)
        return OutputGradient(self.index if client is None else client, step, values)

    def send_frame(self, frame):
        """Send bytes as they are and return what comes back."""
        self.line._stream.send(frame)
        return from_frames([self.line._next_frame()])


def door(port, tls=None, **settings):
    """Return what a caller must know of a server that is a process of its own."""
    job = build_job(**settings)

    def endpoint(name):
        files = TlsFiles.of_client(tls, name) if tls else None
        return Endpoint(f"127.0.0.1:{port}", files)

    return SimpleNamespace(
        contract=job.contract,
        expectation=make_expectation(job.contract, job.trainer.server),
        endpoint=endpoint,
    )


def streams(port, frames_of_each):
    """Open one stream after the other on one connection; yield what comes back."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        method = channel.stream_stream(SESSION)
        for frames in frames_of_each:
            call = method(iter(frames))
            reader = Reader()
            got = []
            with contextlib.suppress(grpc.RpcError):
                got = [reader.feed(frame) for frame in call]
            yield got


def first_frame(message):
    return to_frames(message)[0]


def long_side(total, parts):
    """Yield a sealed side of ``total`` bytes that nobody may send before its turn."""
    head = b"\x4a" + bytes(
        [total & 0x7F | 0x80, total >> 7 & 0x7F | 0x80, total >> 14 & 0x7F | 0x80]
    )
    head += bytes([total >> 21 & 0x7F | 0x80, total >> 28])
    whole = len(head) + total
    yield pb.Frame(part=pb.Part(total=whole, data=head)).SerializeToString()
    for index in range(1, parts):
        part = pb.Part(index=index, data=bytes(2**20))
        yield pb.Frame(part=part).SerializeToString()

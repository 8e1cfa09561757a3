"""Garbage on the socket: the server says no, stays small, and the run is untouched."""

import contextlib
import random
import re
import socket
from pathlib import Path

import torch
from lab.faults import Halts, left_behind
from lab.lines import long_side, streams
from lab.proxy import Proxy
from lab.runs import NAMES, assert_same_weights, build_job, reference

from lightsplit.codecs import Code
from lightsplit.protocol import CodeMessage
from lightsplit.protocol.control import Hello, Ready, Refusal, TurnDone
from lightsplit.protocol.frames import REFUSALS, to_frames

GROWTH_BYTES = 64 * 2**20
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def damaged(chance, valid):
    """Return a frame that may be anything, often almost a legal one."""
    frame = bytearray(chance.choice(valid))
    match chance.randrange(4):
        case 0:
            return chance.randbytes(chance.randrange(200))
        case 1:
            return bytes(frame[: chance.randrange(len(frame))])
        case 2:
            body = chance.randbytes(chance.randrange(100))
            return bytes([chance.randrange(1, 16) << 3 | 2, len(body)]) + body
    for _ in range(chance.randrange(1, 5)):
        frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
    return bytes(frame)


def garbage_streams(chance, contract, count):
    """Yield what so many clients say: nonsense at once, or after a right hello."""
    hello = to_frames(Hello("mallory", contract.to_json()))[0]
    code = CodeMessage(0, 0, Code(torch.zeros(4, contract.code_size)))
    valid = [hello, *(to_frames(m)[0] for m in (code, Ready(2), TurnDone(0, b"x")))]
    for _ in range(count):
        before = [hello] if chance.random() < 0.3 else []
        yield [*before, *(damaged(chance, valid) for _ in range(3))]


def shout(port, chance, count):
    """Open so many bare connections and send bytes that are no HTTP/2."""
    for number in range(count):
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", port)) as line,
        ):
            line.sendall(PREFACE if number % 2 else b"")
            line.sendall(chance.randbytes(chance.randrange(1, 5000)))


def resident_bytes(pid, what="VmRSS"):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{what}:\s+(\d+) kB", status)[1]) * 1024


def throw(port, contract, seed):
    """Throw everything at the server once; return the codes of its refusals."""
    chance = random.Random(seed)  # noqa: S311  the same bytes every time
    codes = set()
    for got in streams(port, garbage_streams(chance, contract, 150)):
        assert all(isinstance(message, Refusal) for message in got)
        codes |= {message.code for message in got}
    for got in streams(port, (long_side(2**29, 30) for _ in range(3))):
        assert [message.code for message in got] in ([], ["too-large"])
        codes |= {message.code for message in got}
    shout(port, chance, 60)
    return codes


def test_garbage_is_refused_within_bounds_and_the_honest_run_continues(make_cluster):
    settings = {"epochs": 6}
    contract = build_job(**settings).contract
    cluster = make_cluster(settings, join=["--give-up-seconds", 300])
    port = cluster.start_server()
    cluster.ports = dict.fromkeys(NAMES, port)
    for name in ("alice", "bob"):
        cluster.start_client(name)
    throw(port, contract, seed=0)  # lets gRPC take what it takes once
    before = resident_bytes(cluster.server.pid)
    codes = throw(port, contract, seed=1)
    halts = Halts(10)  # of her codes
    with Proxy(port, halts.look) as line:
        cluster.ports["carol"] = line.port
        cluster.start_client("carol")
        codes |= throw(port, contract, seed=2)  # while the run is on
        peak = resident_bytes(cluster.server.pid, "VmHWM")
        with halts.next():
            assert cluster.server.code is None
        assert cluster.clients["carol"].wait() == 0
    assert [cluster.clients[name].wait() for name in NAMES] == [0, 0, 0]
    assert cluster.server.wait() == 0, cluster.server.text
    assert_same_weights(left_behind(cluster), reference(**settings))
    assert codes <= set(REFUSALS)
    assert {"malformed", "unknown-message", "too-large", "out-of-order"} <= codes
    assert {"unknown-client", "contract-mismatch"} & codes
    assert peak - before < GROWTH_BYTES
    assert "Traceback" not in cluster.server.text

"""A peer takes no more memory than the contract's messages need."""

import grpc
import pytest
from lab.lines import Caller, long_side
from lab.runs import Network

from lightsplit.errors import RemoteError
from lightsplit.protocol.control import Hello, TurnDone
from lightsplit.protocol.frames import to_frames
from lightsplit.transports.grpc_server import SESSION

ANNOUNCED = 2**29


@pytest.mark.parametrize("heads", ["shared", "private"])
def test_a_side_is_no_longer_than_the_contract_says(heads, tmp_path):
    with Network(tmp_path, heads=heads) as network:
        contract = network.contract
        assert 0 < contract.side_bytes < 2**25  # a small model
        for name in ("alice", "bob"):
            network.join(name, give_up_seconds=1.0)
        with Caller(network, "carol") as caller:
            caller.enter()
            refusal = caller.send_frame(next(long_side(ANNOUNCED, 1)))
    assert refusal.code == "too-large"
    assert f"got {ANNOUNCED + 6}" in refusal.text


def test_no_side_is_kept_where_none_travels(tmp_path):
    with Network(tmp_path, heads="private") as network:
        for name in ("alice", "bob"):
            network.join(name, give_up_seconds=1.0)
        with Caller(network, "carol") as caller:
            turn = caller.enter().turn
            caller.call(caller.code(0))
            caller.call(caller.gradient(0))
            with pytest.raises(RemoteError, match="no side travels") as caught:
                caller.call(TurnDone(turn, b"x" * 1000))
    assert caught.value.code == "too-large"


def test_compressed_frames_are_not_unpacked(tmp_path):
    with Network(tmp_path) as network:
        hello = to_frames(Hello("alice", " " * 60_000))[0]
        address = f"127.0.0.1:{network.port}"
        with grpc.insecure_channel(address, compression=grpc.Compression.Gzip) as line:
            call = line.stream_stream(SESSION)(iter([hello]))
            with pytest.raises(grpc.RpcError) as caught:
                list(call)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED

"""A server whose joined batches several processes compute together."""

import contextlib
import os
import signal
from pathlib import Path

import torch
from lab.faults import Halts, left_behind
from lab.processes import wait_until
from lab.proxy import Proxy
from lab.ranks import serving_ranks
from lab.runs import NAMES, PATIENCE_SECONDS, reference

PARALLEL = {"rounds": "parallel", "heads": "private", "codec": "raw", "epochs": 8}
ROUNDING = {"rtol": 1e-3, "atol": 1e-5}  # after all rounds of the run


def assert_alike(got, expected):
    """Compare what two runs leave, up to the rounding of sums in another order."""
    assert (got.steps, got.samples) == (expected.steps, expected.samples)
    for mine, theirs in zip(
        (got.server, *got.clients), (expected.server, *expected.clients), strict=True
    ):
        assert mine.keys() == theirs.keys()
        for name, tensor in mine.items():
            torch.testing.assert_close(tensor, theirs[name], **ROUNDING, msg=name)


def test_two_ranks_train_what_one_trains_though_one_of_them_dies(
    make_cluster, descendants
):
    cluster = make_cluster(PARALLEL)
    with serving_ranks(cluster, 2) as (server, log):
        second = wait_until(lambda: _second_rank(descendants(server.pid)), "a rank")
        halts = Halts(10)  # the first code of the second epoch
        with Proxy(cluster.ports["alice"], halts.look) as line:
            cluster.ports = dict.fromkeys(NAMES, line.port)
            for name in NAMES:
                cluster.start_client(name)
            with halts.next():
                wait_until(lambda: "epoch 1," in log.read_text(), "the first epoch")
                os.kill(second, signal.SIGKILL)
            assert server.wait(PATIENCE_SECONDS) != 0
        # torchrun tells rank 0 to stop, before or after rank 0 has noticed. gloo misses
        # the end of a process now and then; rank 0 is then ended half a minute later.
        ends = (
            "the ranks of this server cannot go on together",
            "stopped",
            "forcefully",
        )
        assert any(end in log.read_text() for end in ends)
    for client in cluster.clients.values():
        client.signal(signal.SIGKILL)
        client.wait()
    with serving_ranks(cluster, 2) as (server, log):
        for name in NAMES:
            cluster.start_client(name)
        for client in cluster.clients.values():
            assert client.wait() == 0, client.text
        assert server.wait(PATIENCE_SECONDS) == 0, log.read_text()
    assert_alike(left_behind(cluster), reference(**PARALLEL))


def _second_rank(processes):
    """Return the id of the process that is not the server but computes for it."""
    for pid in processes:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if b"RANK=1" in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                return pid
    return None

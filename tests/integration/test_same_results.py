"""Small runs must give the weights and the byte counts that are on file.

A refactoring may not change a result. Where a change of the method moves one on
purpose, record it anew and say why in the changelog:

    RECORD_RESULTS=1 pytest tests/integration/test_same_results.py

Bytes are those of steps, evaluations and hand-offs. The contract's own bytes are left
out: it is text, and gains a term now and then.
"""

import hashlib
import json
import os
from pathlib import Path

import pytest
from lab.faults import left_behind
from lab.runs import NAMES
from safetensors.torch import load_file
from typer.testing import CliRunner

from lightsplit.cli.app import app

EXPECTED = Path(__file__).parent / "expected" / "results.json"
QUICK = (
    "--clients 3 --train-limit 240 --test-limit 60 --batch-size 16 --epochs 2 "
    "--turn-steps 1"
)
RUNS = {
    "u-shared-wcc": "--wcc 0.01",
    "u-private-skewed-lift": "--heads private --alpha 0.5 --codec lightsplit-l",
    "vanilla-raw": "--topology vanilla --codec raw",
    "vanilla-private-wcc": "--topology vanilla --heads private --wcc 0.1",
    "learned-1x1-sgd": "--codec learned-1x1 --ratio 4 --optimizer sgd --lr 0.05 "
    "--momentum 0.9",
    "topk": "--codec topk --turn-steps epoch",
    "wire-half-private": "--wire half --heads private",
    "wire-lean": "--wire lean --turn-steps 3",
    "wire-max": "--wire max",
    "dct-jl-int4-stochastic": "--projection dct --scale jl --format code=int4,"
    "code_gradient=fp16,output=bf16 --rounding code=stochastic",
    "output-linear-frozen": "--output-codec linear --output-size 12 --freeze-backbone",
    "output-low-rank-patience": "--output-codec low-rank --patience 1 --eval-every 1",
    "uniform-pooled-amsgrad": "--projection uniform --data-split pooled-halves "
    "--optimizer amsgrad --weight-decay 0.01 --max-steps 11 --cut l1",
    "backdoor-guarded-skip": "--clients 4 --trigger badnets --malicious 1 "
    "--detector cosine-code,cosine-output --on-flag skip --detect-every 1 "
    "--threshold 1",
    "inspected": "--inspector splitguard --clients 1",
}
NETWORKED = {
    "network-shared": {"wcc": 0.01},
    "network-shared-max": {"wire": "max"},
    "network-private": {"heads": "private", "codec": "lightsplit-l"},
}
NOT_COUNTED = ("setup", "total")


def digest(states):
    """Return the SHA-256 of every tensor of ``states``, by file and name."""
    found = hashlib.sha256()
    for file, state in sorted(states.items()):
        for name, tensor in sorted(state.items()):
            found.update(f"{file}/{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            found.update(tensor.contiguous().numpy().tobytes())
    return found.hexdigest()


def train(*options):
    result = CliRunner().invoke(app, ["train", *map(str, options), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def counted(record):
    counts = record["bytes"]
    return {kind: counts[kind] for kind in sorted(counts) if kind not in NOT_COUNTED}


def outcome(folder, record):
    weights = {path.name: load_file(path) for path in folder.glob("*.safetensors")}
    return {"weights": digest(weights), "bytes": counted(record)}


def in_one_process(name, folder):
    """Return what a run leaves behind."""
    record = train(*QUICK.split(), *RUNS[name].split(), "--out", folder)
    return outcome(folder, record)


def resumed(folder):
    """Return what a run leaves that was made longer after its end."""
    options = [*QUICK.split(), "--wire", "max", "--heads", "private"]
    train(*options, "--epochs", 1, "--out", folder)
    return outcome(folder, train("--resume", folder, "--epochs", 2))


def over_the_network(make_cluster, name):
    """Return what a server and three clients leave."""
    cluster = make_cluster(NETWORKED[name])
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for client in NAMES:
        cluster.start_client(client)
    assert [cluster.clients[client].wait() for client in NAMES] == [0, 0, 0]
    assert cluster.server.wait() == 0, cluster.server.text
    left = left_behind(cluster)
    sides = {f"client-{index}": side for index, side in enumerate(left.clients)}
    record = json.loads((cluster.folder / "server" / "record.json").read_text())
    return {
        "weights": digest({"server": left.server, **sides}),
        "bytes": counted(record),
    }


def assert_on_file(name, got):
    """Compare with the file, or write to it where that is asked for."""
    known = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    if os.environ.get("RECORD_RESULTS"):
        known[name] = got
        EXPECTED.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    assert got == known[name]


@pytest.mark.parametrize("name", RUNS)
def test_a_run_in_one_process_gives_what_is_on_file(name, tmp_path):
    assert_on_file(name, in_one_process(name, tmp_path / "run"))


def test_a_resumed_run_gives_what_is_on_file(tmp_path):
    assert_on_file("resumed", resumed(tmp_path / "run"))


@pytest.mark.parametrize("name", NETWORKED)
def test_a_run_over_the_network_gives_what_is_on_file(name, make_cluster):
    assert_on_file(name, over_the_network(make_cluster, name))

"""A server resumes from exactly the state that it saved."""

import json

import pytest
import torch

from lightsplit.deployment import server_checkpoint
from lightsplit.deployment.server_checkpoint import ServerState
from lightsplit.errors import ContractError, RunError
from lightsplit.runs.progress import Progress

MEMBERS = [
    {"name": name, "batches": 2, "bytes": {"code": 8}}
    for name in ("alice", "bob", "carol")
]


def make_state(**changes):
    progress = Progress(turns=3, steps=3, client_steps=[1, 1, 1], loss_sum=0.5)
    known = ServerState(
        "run", 2, MEMBERS, progress, b"sealed", {"w": torch.eye(2)}, None, [0, 1, 1]
    )
    return known._replace(**changes)


@pytest.mark.parametrize("guard", [None, {"seen": torch.arange(3)}])
def test_a_state_is_read_as_it_was_written(guard, make_contract, tmp_path):
    contract, state = make_contract(), make_state(guard=guard)
    assert not server_checkpoint.exists(tmp_path)
    server_checkpoint.write(tmp_path, contract, state)
    assert server_checkpoint.exists(tmp_path)
    got = server_checkpoint.read(tmp_path, contract, has_guard=guard is not None)
    assert got[:5] == state[:5]
    assert got.steps_before == [0, 1, 1]
    assert torch.equal(got.server["w"], state.server["w"])
    if guard is None:
        assert got.guard is None
    else:
        assert torch.equal(got.guard["seen"], guard["seen"])


def test_a_guard_that_was_not_there_before_is_refused(make_contract, tmp_path):
    server_checkpoint.write(tmp_path, make_contract(), make_state())
    with pytest.raises(RunError, match=r"guard\.safetensors"):
        server_checkpoint.read(tmp_path, make_contract(), has_guard=True)


def test_another_contract_is_refused(make_contract, tmp_path):
    server_checkpoint.write(tmp_path, make_contract(), make_state())
    with pytest.raises(ContractError, match="of another run"):
        server_checkpoint.read(tmp_path, make_contract(seed=1), has_guard=False)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("run", None),
        ("members", None),
        ("members", 3),
        ("members", ["alice"]),
        ("members", [{"name": "alice", "batches": 2}]),
        ("number", "many"),
        ("number", [1]),
        ("steps_before", None),
        ("steps_before", ["x"]),
    ],
)
def test_a_damaged_checkpoint_is_named(key, value, make_contract, tmp_path):
    server_checkpoint.write(tmp_path, make_contract(), make_state())
    path = tmp_path / (tmp_path / "latest").read_text() / "progress.json"
    content = json.loads(path.read_text())
    if value is None:
        del content[key]
    else:
        content[key] = value
    path.write_text(json.dumps(content))
    with pytest.raises(RunError, match="is not a server's checkpoint"):
        server_checkpoint.read(tmp_path, make_contract(), has_guard=False)

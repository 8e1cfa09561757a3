"""Owners who work at the same time, as processes with real sockets between them."""

import json
import signal

import pytest
from lab.faults import left_behind, standing_still
from lab.processes import wait_until
from lab.runs import NAMES, assert_same_state, assert_same_weights, build_job, reference

from lightsplit.experiments import build
from lightsplit.runs.rounds import read_participation

PARALLEL = {"rounds": "parallel"}
LONG = {**PARALLEL, "epochs": 8}  # 16 rounds


@pytest.mark.parametrize(
    "settings",
    [
        {"heads": "shared", "codec": "raw"},
        {"heads": "private", "wire": "lean", "hand_off": "fp32"},
        {"heads": "shared", "objective": "wcc:0.01", "protect_labels": "max-norm"},
    ],
    ids=["shared", "private, short messages", "with further parts"],
)
def test_rounds_over_a_network_are_those_in_one_process(settings, make_cluster):
    settings = {**PARALLEL, "hand_off_optimizer": "travels", **settings}
    cluster = make_cluster(settings)
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for name in NAMES:
        cluster.start_client(name)
    for process in list(cluster.processes.values()):
        assert process.wait() == 0, process.text
    assert_same_weights(left_behind(cluster), reference(**settings))


@pytest.mark.parametrize("heads", ["shared", "private"])
def test_owners_who_are_drawn_over_a_network_are_those_in_one_process(
    heads, make_cluster
):
    settings = {**LONG, "heads": heads, "owners_per_round": 2}
    cluster = make_cluster(settings)
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for name in NAMES:
        cluster.start_client(name)
    for process in list(cluster.processes.values()):
        assert process.wait() == 0, process.text
    job = build_job(**settings)
    list(job.trainer.run())
    file = cluster.folder / "server" / "participation.jsonl"
    told = read_participation(file, 3)
    assert [len(one.done) for one in told] == [2] * 16
    got = left_behind(cluster)
    assert_same_state(got.server, job.trainer.server.side.state())
    newest = told[-1].done if heads == "shared" else range(len(NAMES))
    for index in newest:
        assert_same_state(got.clients[index], job.trainer.clients[index].side.state())
    assert got.client_steps == job.trainer.progress.client_steps


@pytest.mark.parametrize("heads", ["shared", "private"])
def test_a_run_with_owners_who_come_and_go_is_repeated_from_its_participation(
    heads, make_cluster
):
    settings = {**PARALLEL, "heads": heads, "epochs": 40}
    cluster = make_cluster(
        settings,
        serve=["--min-clients", 1, "--round-timeout", 3],
        join=["--give-up-seconds", 300],
    )
    file = cluster.folder / "server" / "participation.jsonl"

    def lines_from(count):
        return lambda: file.exists() and len(file.read_text().splitlines()) >= count

    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    cluster.start_client("alice")
    cluster.start_client("bob")
    wait_until(lines_from(3), "three rounds without carol")
    with standing_still(cluster, "alice", "bob"):
        cluster.start_client("carol")
        wait_until(lambda: "carol has come" in cluster.server.text, "carol")
    wait_until(lambda: ", 2]" in file.read_text(), "carol in a round")
    cluster.processes["bob"].signal(signal.SIGKILL)
    cluster.processes["bob"].wait()
    done = len(file.read_text().splitlines())
    wait_until(lines_from(done + 2), "rounds without bob")
    cluster.start_client("bob")
    for process in list(cluster.processes.values()):
        assert process.wait() in (0, -signal.SIGKILL), process.text
    told = read_participation(file, 3)
    assert {len(one.codes) for one in told} > {2}
    job = build(from_settings_of(settings), participation=told)
    list(job.trainer.run())
    got = left_behind(cluster)
    assert_same_state(got.server, job.trainer.server.side.state())
    # Whoever missed the end of a run with a shared head has an earlier side.
    newest = told[-1].done if heads == "shared" else range(len(NAMES))
    for index in newest:
        assert_same_state(got.clients[index], job.trainer.clients[index].side.state())
    assert got.client_steps == job.trainer.progress.client_steps
    check_record(cluster.folder / "server" / "record.json", got.client_steps)


def check_record(file, client_steps):
    """The record says who was there how often, and how long each has waited."""
    record = json.loads(file.read_text())
    assert record["attendance"] == dict(zip(NAMES, client_steps, strict=True))
    waited = record["waited_seconds"]
    assert list(waited) == list(NAMES)
    assert min(waited.values()) >= 0
    assert waited["alice"] > 0  # she was in most rounds, with one other or two


def from_settings_of(settings):
    return build_job(**settings).experiment

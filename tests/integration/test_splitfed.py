"""SplitFed with processes and real sockets: the weights are those of one process."""

import json
import signal

import pytest
from lab.faults import left_behind, standing_still
from lab.processes import wait_until
from lab.runs import NAMES, assert_same_state, assert_same_weights, build_job, reference

from lightsplit.experiments import build
from lightsplit.runs.rounds import read_participation

VERSIONS = ["splitfed-v1", "splitfed-v2"]


def whole(rounds, **more):
    steps = {"turn_steps": 2, "hand_off": "fp32", "hand_off_optimizer": "travels"}
    return {"rounds": rounds, **steps, **more}


@pytest.mark.parametrize(
    "settings",
    [
        whole("splitfed-v1", codec="raw"),
        whole("splitfed-v2", wire="lean"),
        whole("splitfed-v1", topology="vanilla", turn_steps="epoch"),
    ],
    ids=["v1", "v2, short messages", "v1, vanilla, whole epochs"],
)
def test_splitfed_over_a_network_is_that_in_one_process(settings, make_cluster):
    cluster = make_cluster(settings)
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for name in NAMES:
        cluster.start_client(name)
    for process in list(cluster.processes.values()):
        assert process.wait() == 0, process.text
    assert_same_weights(left_behind(cluster), reference(**settings))


@pytest.mark.parametrize("rounds", VERSIONS)
def test_a_run_with_owners_who_come_and_go_is_repeated_from_its_participation(
    rounds, make_cluster
):
    settings = whole(rounds, epochs=40)
    cluster = make_cluster(
        settings,
        serve=["--min-clients", 1, "--round-timeout", 4],
        join=["--give-up-seconds", 300],
    )
    file = cluster.folder / "server" / "participation.jsonl"

    def told():
        return file.read_text().splitlines() if file.exists() else []

    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    cluster.start_client("alice")
    cluster.start_client("bob")
    wait_until(lambda: len(told()) >= 2, "two rounds without carol")
    with standing_still(cluster, "alice", "bob"):
        cluster.start_client("carol")
        wait_until(lambda: "carol has come" in cluster.server.text, "carol")
    wait_until(lambda: any(", 2]" in line for line in told()), "carol in a round")
    cluster.processes["bob"].signal(signal.SIGKILL)
    cluster.processes["bob"].wait()
    done = len(told())
    wait_until(lambda: len(told()) >= done + 2, "rounds without bob")
    cluster.start_client("bob")
    for process in list(cluster.processes.values()):
        assert process.wait() in (0, -signal.SIGKILL), process.text
    attended = read_participation(file, 3)
    assert {len(one.codes) for one in attended} > {2}
    assert json.loads(told()[-1])["round"] == len(attended) - 1
    job = build(build_job(**settings).experiment, participation=attended)
    list(job.trainer.run())
    got = left_behind(cluster)
    assert_same_state(got.server, job.trainer.server.side.state())
    for index in attended[-1].done:  # whoever missed the end has an earlier side
        assert_same_state(got.clients[index], job.trainer.clients[index].side.state())
    assert got.client_steps == job.trainer.progress.client_steps

"""An error of the server itself ends the run in one sentence, and nothing is lost."""

import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest
from lab.faults import Halts, left_behind
from lab.processes import wait_until
from lab.proxy import Proxy
from lab.runs import NAMES, assert_same_weights, reference

LONG = {"epochs": 12}  # 72 turns of one step
ROUNDS = {  # of all owners, with everything that they hand on
    rounds: {
        "rounds": rounds,
        "epochs": 12,
        "hand_off": "fp32",
        "hand_off_optimizer": "travels",
    }
    for rounds in ("parallel", "splitfed-v1", "splitfed-v2")
}


@pytest.fixture
def make_failing(make_cluster):
    """Return what makes a cluster whose server can be hindered for a while."""
    made = []

    def make(settings):
        made.append(
            make_cluster(
                settings,
                serve=["--checkpoint-every", 3, "--step-timeout-seconds", 5],
                join=["--give-up-seconds", 300],
            )
        )
        return made[-1]

    yield make
    for one in made:
        put_the_folder_back(one)


@pytest.fixture
def cluster(make_failing):
    return make_failing(LONG)


def start_clients(cluster, port):
    cluster.ports = dict.fromkeys(NAMES, port)
    for name in NAMES:
        cluster.start_client(name)


def newest(cluster):
    """Return the step of the newest checkpoint."""
    latest = cluster.folder / "server" / "checkpoint" / "latest"
    return int(latest.read_text().removeprefix("step-")) if latest.exists() else -1


def forbid_long_files(cluster):
    pid = cluster.server.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, hard))


def use_up_descriptors(cluster):
    pid = cluster.server.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))


def take_the_folder_away(cluster):
    folder = cluster.folder / "server" / "checkpoint"
    folder.rename(folder.with_name("elsewhere"))
    folder.write_text("in the way")


def make_the_folder_read_only(cluster):
    """Mount it read-only, because root writes wherever it is not; else take rights."""
    folder = cluster.folder / "server" / "checkpoint"
    if os.geteuid():
        folder.chmod(0o500)
    elif run("mount", "--bind", folder, folder) or run(
        "mount", "-o", "remount,ro,bind", folder
    ):
        pytest.skip("this machine lets nobody mount a folder read-only")


def run(*command):
    return subprocess.run(command, check=False).returncode


def put_the_folder_back(cluster):
    folder = cluster.folder / "server" / "checkpoint"
    if is_mounted(folder):
        assert run("umount", "--lazy", folder) == 0
    elif folder.is_dir():
        folder.chmod(0o700)
    if folder.is_file():
        folder.unlink()
        folder.with_name("elsewhere").rename(folder)


def is_mounted(folder):
    """Return whether something is mounted here; ismount misses folders of one disk."""
    return f" {folder} " in Path("/proc/self/mountinfo").read_text()


OBSTACLES = {
    "a full disk": (forbid_long_files, "File too large"),
    "too many open files": (use_up_descriptors, "Too many open files"),
    "a read-only folder": (make_the_folder_read_only, "cannot save the run"),
    "no folder": (take_the_folder_away, "cannot save the run"),
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_a_checkpoint_that_cannot_be_written_ends_the_run_and_loses_nothing(
    cluster, obstacle
):
    assert_ends_and_goes_on(cluster, obstacle, LONG)


@pytest.mark.parametrize("obstacle", ["a full disk", "too many open files"])
@pytest.mark.parametrize("rounds", ROUNDS)
def test_a_failing_disk_ends_a_run_of_rounds_and_loses_nothing(
    rounds, obstacle, make_failing
):
    settings = ROUNDS[rounds]
    assert_ends_and_goes_on(make_failing(settings), obstacle, settings)


def assert_ends_and_goes_on(cluster, obstacle, settings):
    """Hinder the server until it ends, and start all again without the obstacle."""
    hinder, text = OBSTACLES[obstacle]
    halts = Halts(10)
    with Proxy(cluster.start_server(), halts.look) as line:
        start_clients(cluster, line.port)
        with halts.next():
            wait_until(lambda: newest(cluster) >= 3, "a checkpoint")
            hinder(cluster)
        assert cluster.server.wait() == 1, cluster.server.text
    said = cluster.server.text
    assert text in said
    assert said.count("error:") == 1
    assert "Traceback" not in said
    assert "damaged" not in said
    for name in NAMES:
        wait_until(lambda one=name: "trying again" in cluster.clients[one].text, name)
        assert str(cluster.folder / "server") not in cluster.clients[name].text
        cluster.clients[name].signal(signal.SIGKILL)
        cluster.clients[name].wait()
    put_the_folder_back(cluster)
    start_clients(cluster, cluster.start_server())
    assert [cluster.clients[name].wait() for name in NAMES] == [0, 0, 0]
    assert cluster.server.wait() == 0, cluster.server.text
    assert_same_weights(left_behind(cluster), reference(**settings))


def test_a_stalled_client_does_not_keep_the_server_from_stopping(cluster):
    halts = Halts(10)
    with Proxy(cluster.start_server(), halts.look) as line:
        start_clients(cluster, line.port)
        with halts.next():
            for name in NAMES:
                cluster.clients[name].signal(signal.SIGSTOP)
        cluster.server.signal(signal.SIGTERM)
        assert cluster.server.wait() == 128 + signal.SIGTERM, cluster.server.text
    assert "resume with" in cluster.server.text

"""The services of compose.yaml as processes: its commands, its mounts, no other file.

What a container engine adds, images and the name ``server``, is not tried: the name
becomes an address of this machine.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from lab.ports import free_port

EXAMPLE = Path(__file__).parents[2] / "examples" / "two_machines"


@pytest.fixture
def example(tmp_path):
    """Return the example's folder after the set-up of its README."""
    folder = tmp_path / "two_machines"
    shutil.copytree(EXAMPLE, folder)
    certs = ["certs", "pki", "--server-name", "server", "--server-name", "127.0.0.1"]
    for command in (
        [*certs, "--client", "alice", "--client", "bob"],
        ["keys", "clients.key"],
    ):
        subprocess.run([*LIGHTSPLIT, *command], cwd=folder, check=True)
    return folder


LIGHTSPLIT = [sys.executable, "-m", "lightsplit"]


def mount(service, example, place):
    """Give a service its folder, with what its volumes bring and nothing else."""
    for volume in service["volumes"]:
        source, target = volume.removesuffix(":ro").split(":")
        inside = place / Path(target).relative_to(service["working_dir"])
        inside.parent.mkdir(parents=True, exist_ok=True)
        (example / source).parent.mkdir(parents=True, exist_ok=True)
        inside.symlink_to(example / source)


def start(service, place, port):
    command = service["command"].replace("server:7443", f"127.0.0.1:{port}")
    command = command.replace("0.0.0.0:7443", f"127.0.0.1:{port}")
    return subprocess.Popen(
        [*LIGHTSPLIT, *shlex.split(command)],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.slow
def test_the_services_of_the_example_finish_their_run(example, tmp_path):
    services = yaml.safe_load((example / "compose.yaml").read_text())["services"]
    port = free_port()
    started = {}
    try:
        for name, service in services.items():
            for folder in ("server", "alice", "bob"):
                (example / "runs" / folder).mkdir(parents=True, exist_ok=True)
            place = tmp_path / "containers" / name
            mount(service, example, place)
            started[name] = start(service, place, port)
        said = {name: one.communicate(timeout=400)[0] for name, one in started.items()}
    finally:
        for process in started.values():
            process.kill()
    assert [one.returncode for one in started.values()] == [0, 0, 0], said
    record = json.loads((example / "runs/server/record.json").read_text())
    assert (record["epochs"], record["stopped_by"]) == (3, "schedule")
    for owner in ("alice", "bob"):
        assert (example / "runs" / owner / "client.safetensors").exists()

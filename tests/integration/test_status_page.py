"""The live page of a real server, drawn by a real browser."""

import re
import shutil
import subprocess
import urllib.request

import pytest
from lab.processes import wait_until
from lab.runs import NAMES

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
LONG = {"epochs": 500, "heads": "private", "detector": "cosine-code"}


def port_in(process):
    return int(
        wait_until(
            lambda: re.search(r"status on port (\d+)", process.text), "the status port"
        )[1]
    )


def metric(port, name):
    url = f"http://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(url, timeout=120) as reply:
        found = re.search(rf"^{re.escape(name)} (\S+)$", reply.read().decode(), re.M)
    return float(found[1]) if found else 0.0


@pytest.fixture
def live(make_cluster, zygote, tmp_path):
    """Return the status port of a run that trains and has refused a stranger."""
    cluster = make_cluster(LONG, serve=["--status-address", "127.0.0.1:0"])
    cluster.ports = dict.fromkeys([*NAMES, "mallory"], cluster.start_server())
    assert cluster.start_client("mallory").wait() == 1
    for name in NAMES:
        cluster.start_client(name)
    port = port_in(cluster.server)
    wait_until(lambda: metric(port, "lightsplit_steps_total") > 12, "the second epoch")
    return port


def test_prometheus_sees_the_run(live, tmp_path):
    for name in NAMES:
        assert metric(live, f'lightsplit_connected{{client="{name}"}}') == 1
    assert metric(live, 'lightsplit_refused_total{reason="unknown-client"}') == 1
    assert metric(live, 'lightsplit_bytes_total{kind="code"}') > 0
    assert 0 < metric(live, "lightsplit_checkpoint_age_seconds") < 60
    assert metric(live, "lightsplit_resident_memory_bytes") > 2**26
    evaluations = (tmp_path / "server" / "metrics.jsonl").read_text().splitlines()
    assert len(evaluations) >= 1  # while the run goes on


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_a_browser_draws_the_run(live, tmp_path):
    drawn = subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            *("--enable-logging=stderr", "--virtual-time-budget=3000"),
            *(f"--user-data-dir={tmp_path / 'browser'}", f"http://127.0.0.1:{live}/"),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=400,
    )
    page = drawn.stdout
    assert "CONSOLE" not in drawn.stderr, drawn.stderr  # errors, refused resources
    for name in NAMES:
        assert re.search(rf"<td>{name}</td><td[^>]*>(waits|in turn)</td>", page), page
    assert "3 of 3" in page
    assert ">training<" in page
    assert re.search(r"<td>unknown-client</td><td>1</td>", page)
    assert re.search(r'<svg id="losses".*?<path class="line s0" d="M', page, re.S)
    assert re.search(r'<svg id="figures".*?<path class="line s0" d="M', page, re.S)
    assert "<td>cosine-code</td>" in page

"""Image, compose file, unit and chart: locked down, and accepted by their tools.

A tool that is not on this machine is a test that is skipped, with the reason.
"""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "two_machines"
UNIT = ROOT / "deploy" / "systemd" / "lightsplit-server.service"
CHART = ROOT / "deploy" / "helm" / "lightsplit"


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_image_runs_as_nobody_in_particular():
    lines = (EXAMPLE / "Dockerfile").read_text().splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER")]
    assert users == ["10001:10001"]
    assert lines.index("USER 10001:10001") < lines.index('ENTRYPOINT ["lightsplit"]')


def test_every_service_has_a_read_only_root_and_no_rights():
    services = yaml.safe_load((EXAMPLE / "compose.yaml").read_text())["services"]
    assert set(services) == {"server", "alice", "bob"}
    for service in services.values():
        assert service["read_only"] is True
        assert service["user"].endswith("10001:10001}")
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_systemd_accepts_the_unit_and_finds_it_well_locked():
    verified = run("systemd-analyze", "verify", str(UNIT))
    ours = [line for line in verified.stderr.splitlines() if UNIT.name in line]
    # It may miss the program, which is not installed in /opt on this machine.
    assert not [line for line in ours if "not executable" not in line], ours
    rated = run("systemd-analyze", "security", "--offline=true", str(UNIT)).stdout
    level = float(rated.rsplit("service:", 1)[1].split()[0])
    assert level < 3.0


@pytest.mark.skipif(not shutil.which("helm"), reason="no helm on this machine")
@pytest.mark.parametrize("token", ["", "status"])
def test_helm_accepts_the_chart(token):
    drawn = run(
        "helm", "template", "demo", str(CHART), "--set", f"statusTokenSecret={token}"
    )
    assert drawn.returncode == 0, drawn.stderr
    found = {one["kind"]: one for one in yaml.safe_load_all(drawn.stdout) if one}
    assert set(found) == {"ConfigMap", "Service", "StatefulSet"}
    pod = found["StatefulSet"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    (server,) = pod["containers"]
    assert server["securityContext"]["readOnlyRootFilesystem"] is True
    assert ("--status-token=/tls/token" in server["args"]) == bool(token)


def test_the_charts_plain_files_are_yaml():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert chart["apiVersion"] == "v2"
    assert values["statusTokenSecret"] == ""

"""Runs over real sockets leave nothing behind: no thread, process or open line."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for lab

from lab.processes import Cluster, Zygote
from lab.runs import NAMES

from lightsplit.runtime import Secret
from lightsplit.transports.certificates import CertificateFolder
from lightsplit.transports.sealing import SealingKey


def pytest_collection_modifyitems(items):
    """Whole runs over sockets are not for the fast part, short as each of them is."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A folder as 'lightsplit certs' makes it, for the server and every client."""
    folder = CertificateFolder(tmp_path_factory.mktemp("tls"))
    folder.make_authority()
    folder.make_server()
    for name in NAMES:
        folder.make_client(name)
    return folder.path


@pytest.fixture(scope="session")
def _zygote():
    with Zygote() as zygote:
        yield zygote


@pytest.fixture
def zygote(_zygote):
    """What starts commands as processes; none of them outlives the test."""
    yield _zygote
    _zygote.kill_all()


@pytest.fixture
def make_cluster(zygote, tmp_path):
    """Return what makes a server and clients as processes, not yet started.

    All clients have the run's seed for their secret: what they draw, one process draws.
    """

    def make(settings, **options):
        SealingKey.generate().save(tmp_path / "clients.key")
        known = tmp_path / "seed.secret"
        Secret(settings.get("seed", 0)).save(known)
        return Cluster(
            zygote, tmp_path, settings=settings, **{"secret": known, **options}
        )

    return make


@pytest.fixture
def start(zygote, tmp_path):
    """Return what starts a command as a process; NAME.out is its output."""
    return lambda name, *words: zygote.start(tmp_path / f"{name}.out", *words)


@pytest.fixture
def run(zygote, tmp_path):
    """Return what runs a command to its end and returns all that it printed."""

    def run(*words, code=0):
        log = tmp_path / f"{len(list(tmp_path.glob('*.log')))}.log"
        process = zygote.start(log, *words)
        assert process.wait() == code, process.text
        assert "Traceback" not in process.text
        return process.text

    return run

"""Small files in the published formats, and the folder of the real ones."""

import os
from pathlib import Path

import pytest

from lightsplit.data import folder

NOWHERE = "http://127.0.0.1:9/"  # the discard port: refused at once


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Point every download at a closed port of this machine."""
    for dataset in folder.ADDRESSES:
        monkeypatch.setitem(folder.ADDRESSES, dataset, NOWHERE)


@pytest.fixture(scope="session")
def published():
    """Return the folder of the real files, or skip."""
    named = os.environ.get("LIGHTSPLIT_DATA") or Path.home() / "lightsplit-data"
    if not Path(named).is_dir():
        pytest.skip(f"no published datasets in {named}")
    return Path(named)

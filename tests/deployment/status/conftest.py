"""A picture of a run as the server's loop takes it, with nothing running."""

import threading
from types import SimpleNamespace

import pytest

from lightsplit.deployment.refusals import Refusals
from lightsplit.deployment.roster import Roster
from lightsplit.deployment.status import Board
from lightsplit.runs.progress import Progress
from lightsplit.transports import Peer


@pytest.fixture
def run():
    """Return what a board reads of a coordinator; alice is there and in turn."""
    roster = Roster(2, threading.RLock(), ["alice", "bob"])
    roster[0].peer = Peer(None, lambda: None, lambda: True)
    roster[0].loss = 0.5
    roster[0].meter.add("code", 100)
    roster[0].meter.add("output", 50)
    roster[0].meter.add("hand_off", 7)
    refusals = Refusals()
    refusals.count("unknown-client")
    return SimpleNamespace(
        run_name="abc",
        contract=SimpleNamespace(clients=2),
        progress=Progress(
            turns=3,
            steps=12,
            samples=96,
            client_steps=[8, 4],
            bytes=roster.bytes_by_kind(),
            history=[{"step": 8, "test_loss": 1.5, "test_accuracy": 0.25}],
        ),
        at_work=lambda: {0},
        round_number=None,
        computing=SimpleNamespace(seconds=30.0, share=0.25),
        finished=None,
        refusals=refusals,
        members=roster,
    )


@pytest.fixture
def board(run, tmp_path):
    made = Board(tmp_path / "checkpoint")
    made.update(run)
    return made

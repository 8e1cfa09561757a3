"""Ports that a test can name before a server listens there, and again after a kill."""

import os
import secrets
import socket
from contextlib import suppress

FIRST, PER_WORKER, WORKERS = 10_000, 500, 12


def free_port():
    """Return a port that nobody else takes: no other worker, nor the system unasked.

    The system gives its own from 32768 on, and some systems from 16000 on.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = FIRST + PER_WORKER * (worker % WORKERS)
    while True:
        port = first + secrets.randbelow(PER_WORKER)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port

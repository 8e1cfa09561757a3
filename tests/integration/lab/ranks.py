"""A server on several processes, as ``torchrun`` starts it."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

from lab.processes import wait_until
from lab.runs import NAMES, PATIENCE_SECONDS


@contextmanager
def serving_ranks(cluster, ranks):
    """Yield the process of ``torchrun``, and its log, once it listens for clients."""
    folder, log = cluster.folder / "server", cluster.folder / "ranks.log"
    is_begun = (folder / "experiment.toml").exists()
    source = ["--resume", folder] if is_begun else [*cluster.settings, "--out", folder]
    names = [part for name in NAMES for part in ("--client", name)]
    address = ["--address", "127.0.0.1:0", "--checkpoint-every", 3]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    serve = ["-m", "lightsplit", "serve", *source, *address, *names]
    command = [*launcher, "--nproc-per-node", str(ranks), *map(str, serve)]
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=os.environ
        )
    try:
        said = wait_until(
            lambda: (
                re.search(r"listening on port (\d+)", log.read_text())
                or process.poll() is not None
            ),
            "the port",
        )
        assert said is not True, log.read_text()
        cluster.ports = dict.fromkeys(NAMES, int(said[1]))
        yield process, log
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_SECONDS)

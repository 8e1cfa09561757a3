"""Child process: the server of one measured run.

python -m benchmarks.network_server RUN CERTS FOLDER
"""

import sys
from pathlib import Path

from benchmarks.network_children import end_with_parent
from benchmarks.network_runs import Run, make_ends
from lightsplit.deployment.coordinator import Coordinator
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.network import serve
from lightsplit.transports.credentials import TlsFiles


class Announcement:
    """Prints the port, once."""

    def __init__(self) -> None:
        self._is_done = False

    def __call__(self, _run: Coordinator, port: int) -> bool:
        """Let the run go on."""
        if not self._is_done:
            print(port, flush=True)
            self._is_done = True
        return True


def main(run_text: str, certs: str, folder: str) -> None:
    """Serve the run to its end."""
    end_with_parent()
    run = Run.from_json(run_text)
    ends = make_ends(run)
    serve(
        ends.server,
        ends.contract,
        run.plan,
        Endpoint("127.0.0.1:0", TlsFiles.of_server(Path(certs))),
        Path(folder),
        names=run.names,
        watch=Announcement(),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

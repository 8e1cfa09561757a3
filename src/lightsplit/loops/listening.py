"""The server's end of loops over gRPC."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lightsplit.deployment.door import most_streams
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.network import make_expectation
from lightsplit.loops.loop_server import LoopServer
from lightsplit.loops.reception import Reception
from lightsplit.protocol import Reader
from lightsplit.transports.credentials import TlsFiles, server_credentials
from lightsplit.transports.grpc_server import SessionServer

if TYPE_CHECKING:
    from lightsplit.loops.hosting import Host

_TICK_SECONDS = 0.1


def listen(
    loops: LoopServer,
    host: "Host",
    address: str,
    *,
    certs: Path | str | None,
    insecure: bool,
    watch: Callable[[LoopServer, int], bool],
) -> None:
    """Answer clients until ``watch`` returns false.

    Raises:
        RunError: if the server itself cannot continue, because its disk is full, say.
    """
    tls = TlsFiles.of_server(Path(certs)) if certs else None
    endpoint = Endpoint(address, tls, insecure)
    endpoint.check()
    reception = Reception(loops, tls)
    listener = SessionServer(
        reception.open,
        partial(Reader, make_expectation(loops.contract, host.server)),
        credentials=server_credentials(tls) if tls else None,
        max_sessions=most_streams(loops.contract.clients),
    )
    port = listener.bind(address)
    try:
        watch(loops, port)
        listener.start()
        while reception.failure is None and watch(loops, port):
            reception.sweep()
            time.sleep(_TICK_SECONDS)
    finally:
        listener.stop()
    if reception.failure is not None:
        raise reception.failure

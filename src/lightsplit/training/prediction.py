"""Forward passes over the network, with the server in evaluation mode."""

from collections.abc import Iterator
from contextlib import contextmanager

from lightsplit.errors import ProtocolError
from lightsplit.protocol import Contract, Reply, Request
from lightsplit.protocol.control import Hello, Welcome
from lightsplit.results import tensors
from lightsplit.runtime import Client
from lightsplit.training.network import Endpoint, open_line
from lightsplit.training.worker import Line
from lightsplit.transports.sealing import SealingKey


@contextmanager
def predicting(
    client: Client,
    contract: Contract,
    endpoint: Endpoint,
    *,
    name: str,
    key: SealingKey | None = None,
) -> Iterator[Client]:
    """Connect ``client`` for ``predict`` alone; no training state is touched.

    With shared heads the server hands out the newest sealed side, which ``key`` opens;
    otherwise the client's own side is used as it is.
    """
    line = open_line(endpoint, contract, client.side.codec)
    try:
        welcome = line.call(Hello(name, contract.to_json(), purpose="predict"))
        if not isinstance(welcome, Welcome):
            raise ProtocolError(f"expected a welcome, got {type(welcome).__name__}")
        if welcome.side and key is not None:
            blob = key.open(
                welcome.side,
                run=welcome.run,
                turn=welcome.turn,
                contract=contract.digest,
            )
            client.side.load(tensors.from_bytes(blob))
        client.index = welcome.index
        client.send = lambda request: _ask(line, request)
        yield client
    finally:
        line.close()


def _ask(line: Line, request: Request) -> Reply:
    return line.call(request)  # type: ignore[return-value]

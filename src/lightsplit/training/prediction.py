"""Forward passes over the network, with the server in evaluation mode."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from lightsplit.errors import ConfigError, ProtocolError, TransportError
from lightsplit.protocol import Contract, Reply, Request
from lightsplit.protocol.control import Hello, Welcome
from lightsplit.results import tensors
from lightsplit.runtime import Client
from lightsplit.training.network import Endpoint, make_expectation, open_line
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
    line = _Line(client, contract, endpoint, name)
    try:
        welcome = line.open()
        if welcome.side or welcome.turn:
            _take_side(client, contract, welcome, key)
        client.index = welcome.index
        client.send = line.ask
        yield client
    finally:
        line.close()


class _Line:
    """A connection for prediction: what is lost can be asked again."""

    def __init__(
        self, client: Client, contract: Contract, endpoint: Endpoint, name: str
    ) -> None:
        expectation = make_expectation(contract, client)
        self._connect = partial(open_line, endpoint, expectation)
        self._hello = Hello(name, contract.to_json(), purpose="predict")
        self._line = self._connect()

    def open(self) -> Welcome:
        """Introduce the client and return what the server says."""
        welcome = self._line.call(self._hello)
        if not isinstance(welcome, Welcome):
            raise ProtocolError(f"expected a welcome, got {type(welcome).__name__}")
        return welcome

    def ask(self, request: Request) -> Reply:
        """Return the reply; the server may have cut off a line that was idle."""
        try:
            return self._line.call(request)  # type: ignore[return-value]
        except TransportError:
            self._line.close()
            self._line = self._connect()
            self.open()
            return self._line.call(request)  # type: ignore[return-value]

    def close(self) -> None:
        """End the connection."""
        self._line.close()


def _take_side(
    client: Client, contract: Contract, welcome: Welcome, key: SealingKey | None
) -> None:
    """Take over the side that the last turn left, where one travels."""
    if contract.heads != "shared" or contract.clients == 1:
        return
    if key is None:
        raise ConfigError(
            "the shared head is sealed: a key is needed to predict (--key)"
        )
    blob = key.open(
        welcome.side, run=welcome.run, turn=welcome.turn, contract=contract.digest
    )
    client.take_over(tensors.from_bytes(blob))

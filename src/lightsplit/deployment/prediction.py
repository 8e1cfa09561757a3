"""Predictions over the network, with the server in evaluation mode."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from lightsplit.deployment.endpoint import Endpoint, open_line
from lightsplit.deployment.hand_offs import HandOffs
from lightsplit.deployment.network import make_expectation
from lightsplit.errors import ProtocolError, TransportError
from lightsplit.protocol import Contract, EncryptedCode, Reply, Request
from lightsplit.protocol.control import Hello, Welcome
from lightsplit.runtime import Client
from lightsplit.transports.homomorphic import Encrypting
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
    """Connect ``client`` for ``predict`` alone; the run's state does not change.

    If the side travels, the client gets the newest one from the server, sealed, and
    ``key`` opens it. Otherwise the client uses its own side as it is.
    """
    line = _PredictionLine(client, contract, endpoint, name)
    try:
        welcome = line.open()
        if contract.shares_side:
            hand_offs = HandOffs(client, contract, key)
            if not welcome.side:
                raise ProtocolError(
                    "the server has no side for this client: the first turn is not "
                    "over, or the server withholds it; predict after the first turn"
                )
            hand_offs.open(welcome.side, welcome.run, welcome.turn)
        client.index = welcome.index
        client.send = line.ask
        if contract.cipher_bytes:
            client.send = Encrypting(line.ask, _output_shape(client))  # type: ignore[assignment]
        yield client
    finally:
        line.close()


def _output_shape(client: Client) -> tuple[int, ...]:
    codec = client.side.output_codec
    return (-1,) if codec is None else codec.layout(1).values.shape[1:]


class _PredictionLine:
    """A connection for prediction; a prediction can be asked for again."""

    def __init__(
        self, client: Client, contract: Contract, endpoint: Endpoint, name: str
    ) -> None:
        expectation = make_expectation(contract, client)
        self._connect = partial(open_line, endpoint, expectation)
        self._hello = Hello(name, contract.to_json(), purpose="predict")
        self._line = self._connect()

    def open(self) -> Welcome:
        """Introduce the client and return the server's welcome."""
        welcome = self._line.call(self._hello)
        if not isinstance(welcome, Welcome):
            raise ProtocolError(f"expected a welcome, got {type(welcome).__name__}")
        return welcome

    def ask(self, request: Request | EncryptedCode) -> Reply:
        """Return the reply, on a new line if the server has cut off an idle one."""
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

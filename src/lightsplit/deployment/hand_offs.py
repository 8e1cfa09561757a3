"""Sealed hand-offs of a shared side, at the clients."""

from lightsplit.errors import ConfigError
from lightsplit.protocol import Contract
from lightsplit.results import tensors
from lightsplit.runtime import Client
from lightsplit.transports.sealing import SealingKey


class HandOffs:
    """Seals a client's side for the next client, and opens the one that it receives.

    Args:
        client: whose side travels.
        contract: of the run; a seal is bound to it, to the run and to the turn.
        key: the same at every client.
    """

    def __init__(
        self, client: Client, contract: Contract, key: SealingKey | None
    ) -> None:
        if key is None:
            raise ConfigError(
                "shared heads travel sealed: a key is needed, the same at every client "
                "('lightsplit keys FILE' makes one, --key takes it); clients with "
                "certificates and a folder agree on one by themselves"
            )
        self._client = client
        self._terms = client.hand_off.bound_to(contract.digest)
        self._key = key

    def seal(self, run: str, turn: int) -> bytes:
        """Return the client's side as ``turn`` leaves it, sealed."""
        blob = tensors.to_bytes(self._client.hand_on())
        return self._key.seal(blob, run=run, turn=turn, contract=self._terms)

    def open(self, sealed: bytes, run: str, turn: int) -> None:
        """Give the client the side that ``turn`` left."""
        blob = self._key.open(sealed, run=run, turn=turn, contract=self._terms)
        self._client.take_over(tensors.from_bytes(blob))

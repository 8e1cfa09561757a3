"""What clients post for each other while they agree on a key; the server reads none.

A post may be replaced until all clients have posted. From then on it stands, so that a
client that was started again gets what the others got.
"""

from lightsplit.errors import ProtocolError
from lightsplit.transports.key_agreement import join_posts

ROUNDS = 2


class KeyBoard:
    """The posts of every round; callers hold the run's lock.

    Args:
        clients: how many take part.
    """

    def __init__(self, clients: int) -> None:
        self._clients = clients
        self._rounds: list[dict[int, bytes]] = [{} for _ in range(ROUNDS)]

    def post(self, round_number: int, client: int, post: bytes) -> None:
        """Keep a client's post of a round."""
        if round_number and not self.is_complete(round_number - 1):
            raise ProtocolError(f"round {round_number} of the key's agreement is early")
        posts = self._rounds[round_number]
        if not self.is_complete(round_number):
            posts[client] = post
        elif not round_number and posts[client] != post:
            raise ProtocolError(
                "the clients of this run have agreed on a key already, with another "
                "offer of this one: start with the folder (--state) of that start, or "
                "start the server anew",
                code="refused",
            )

    def is_complete(self, round_number: int) -> bool:
        """Return whether every client has posted."""
        return len(self._rounds[round_number]) == self._clients

    def joined(self, round_number: int) -> bytes:
        """Return the posts of all clients in the order of their numbers."""
        posts = self._rounds[round_number]
        return join_posts([posts[client] for client in range(self._clients)])

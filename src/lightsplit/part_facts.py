"""What a user should know of a part before choosing it, for ``lightsplit list``."""

from typing import Literal, NamedTuple

Status = Literal["ours", "faithful", "adapted", "not applicable", "–"]


class PartFacts(NamedTuple):
    """Facts about a part, each in a few words.

    Attributes:
        source: where it was published.
        assumes: what must hold where it is used.
        client_cost: what it costs the client.
        attacker: what an attacker does who knows it.
        status: ours; faithful to its source; adapted to this system; or not applicable
            here.
    """

    source: str = "–"
    assumes: str = "–"
    client_cost: str = "–"
    attacker: str = "–"
    status: Status = "–"

    def entries(self) -> dict[str, str]:
        """Return the facts by the names of their columns."""
        return {
            "source": self.source,
            "assumes": self.assumes,
            "costs the client": self.client_cost,
            "adaptive attacker": self.attacker,
            "status": self.status,
        }

"""Nothing is sent: the client has the whole of a smaller model.

    activation ──flatten──► one linear layer at the client ──► result

This is the line that every other codec has to beat: what clients reach without the
server. Messages of steps disappear; a shared head still travels from client to client.
"""

from collections.abc import Mapping
from typing import Any

from lightsplit.codecs.base import CODECS
from lightsplit.codecs.raw import Raw
from lightsplit.part_facts import PartFacts


@CODECS.register("none")
class NoCode(Raw):
    """Sends nothing: head and one linear layer train at the client alone.

    Args:
        shape: shape of one activation.
        seed: not used.
    """

    name = "none"
    facts = PartFacts(
        source="LightSplit",
        assumes="classes that one linear layer can tell apart",
        client_cost="the whole of a smaller model",
        attacker="nobody sees a code",
        status="ours",
    )
    is_sent = False

    def __init__(self, shape: tuple[int, ...], seed: int = 0) -> None:
        super().__init__(shape, seed=seed)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Accept anything: there is no option."""

"""Nothing is sent: the client has the whole of a smaller model.

    activation ──flatten──► one linear layer at the client ──► result

With ``hidden``, a hidden layer of that width comes first, as in ``lightsplit-b`` with
``encoder_hidden``: so clients that compute more can be compared with each other.

This is the line that every other codec has to beat: what clients reach without the
server. Messages of steps disappear; a shared head still travels from client to client.
"""

from collections.abc import Mapping
from typing import Any

from lightsplit.codecs.base import CODECS
from lightsplit.codecs.few_bits import check_count
from lightsplit.codecs.raw import Raw
from lightsplit.part_facts import PartFacts


@CODECS.register("none")
class NoCode(Raw):
    """Sends nothing: head and one linear layer train at the client alone.

    Args:
        shape: shape of one activation.
        seed: not used.
        hidden: width of a hidden layer before the linear one; default: 0, none.
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

    def __init__(
        self, shape: tuple[int, ...], seed: int = 0, *, hidden: int = 0
    ) -> None:
        self.check_options({"hidden": hidden})
        super().__init__(shape, seed=seed)
        self.hidden = hidden

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ConfigError if the width of the hidden layer is out of range."""
        if options.get("hidden", 0) != 0:
            check_count("hidden", options["hidden"])

    @staticmethod
    def label(options: Mapping[str, Any]) -> str:
        """Return the codec in a few words."""
        hidden = options.get("hidden", 0)
        return f"none hidden={hidden}" if hidden else "none"

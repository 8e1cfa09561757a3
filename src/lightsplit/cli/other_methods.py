"""Published methods that are no part of a training run: ``lightsplit list methods``."""

from typing import NamedTuple

from lightsplit.part_facts import PartFacts


class OtherMethod(NamedTuple):
    """A method that no option of a run names.

    Attributes:
        what: it is, and how to use it or why it is not here.
        facts: what a user should know of it.
    """

    what: str
    facts: PartFacts


OTHER_METHODS = {
    "he-linear": OtherMethod(
        "Encrypted prediction, with 'serve', 'join' and 'predict --encrypted'.",
        PartFacts(
            source="after khoaguin/split-learning-1D-HE",
            assumes="a linear server, codes in fp32 with a row for each sample",
            client_cost="a ciphertext for each value of a code, up to 4,096 samples",
            attacker="sees how many values and samples there are, and no number",
            status="adapted",
        ),
    ),
    "fedvs": OtherMethod(
        "Sums of embeddings that a server cannot take apart. Not applicable: here each "
        "client has its own samples, so there is no sum to hide in.",
        PartFacts(
            source="Li, Yao, Liu, ICML 2023",
            assumes="clients that hold different columns of the same samples",
            client_cost="shares of its data and its model for every other client",
            attacker="none here: it is not built",
            status="not applicable",
        ),
    ),
}

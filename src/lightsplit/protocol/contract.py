"""The contract: everything that client and server agree on before the first step.

Both sides build the contract from their own settings and compare its SHA-256. It holds
the seed and the fingerprint of a projection, never the matrix.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from lightsplit.errors import ContractError

PROTOCOL_VERSION = 5
TURNS, PARALLEL = "turns", "parallel"
SPLITFED_V1, SPLITFED_V2 = "splitfed-v1", "splitfed-v2"
_TUPLES = ("activation_shape", "output_shape", "metrics", "companions")


@dataclass(frozen=True)
class Contract:
    """The terms of one run.

    Attributes:
        model: a name both sides know the model by.
        cut: name of the cut.
        topology: ``u`` or ``vanilla``.
        heads: ``shared`` or ``private``.
        activation_shape: of one sample at the front cut, before the encoder.
        output_shape: of one sample at the back cut.
        codec: name of the codec at the front cut.
        codec_options: its options, the seed of its projection among them.
        code_size: values per sample in a code.
        fingerprint: of the numbers that the codec drew from its seed.
        seed: of the run.
        clients: how many take part.
        batch_size: the largest batch of a step.
        turn_steps: steps per turn; 0 is a whole epoch.
        accumulate: steps of a turn whose mean gradient makes one update at both ends.
        format: wire formats of the four messages.
        rounding: how their numbers are rounded.
        output_codec: name of the codec at the back cut, with options of its own.
        output_size: values per sample at the back cut; 0 is the whole output.
        output_fingerprint: of the numbers that the output codec drew from its seed.
        hand_off: format in which a side travels.
        statistics: whose running statistics the server normalises with.
        hand_off_optimizer: whether its optimizer's state travels or stays.
        metrics: names of the test figures that clients may report, besides the loss.
        side_bytes: the most bytes of a sealed side; 0 is up to 1 GiB.
        norm_limit: the largest number in a code or an output gradient, and the largest
            norm of the gradient of the server's weights.
        gradients: ``all``, or ``none`` where a step is a code and its output only.
        release: ``every-step``, or ``once`` where each sample's code is sent once.
        rows: what a row of a code is, a ``sample`` or a ``token``; with tokens the
            shapes above are those of one token.
        output_rows: the same for outputs.
        most_tokens: the longest sequence; 0 where rows are samples.
        companions: what crosses with a code besides it (``protocol.companions``).
        cipher_bytes: the most bytes of an encrypted code or output; 0 where predictions
            are not encrypted.
        rounds: ``turns``, one owner after the other; ``parallel``, all at once in one
            joined batch; ``splitfed-v1``, each with a backbone copy of its own, and
            ``splitfed-v2``, one after the other in random order: both average weights
            after every round.
        share_numbers: in an owner's share of a round's sum; 0 where nothing is added.
        staleness: how many updates of others may come between a code and the update to
            which it leads; 0: the server has one update open at a time.
        form: what the owners agree on about their samples; empty if nothing is said.
    """

    model: str
    cut: str
    topology: str
    heads: str
    activation_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    codec: str
    codec_options: dict[str, Any]
    code_size: int
    fingerprint: str
    seed: int
    clients: int
    batch_size: int
    turn_steps: int
    format: str = "fp32"
    rounding: str = ""
    output_codec: str = "raw"
    output_size: int = 0
    output_fingerprint: str = ""
    hand_off: str = "fp32"
    statistics: str = "shared"
    accumulate: int = 1
    hand_off_optimizer: str = "travels"
    metrics: tuple[str, ...] = ("accuracy",)
    norm_limit: float = 1e6
    side_bytes: int = 0
    gradients: str = "all"
    release: str = "every-step"
    rows: str = "sample"
    output_rows: str = "sample"
    most_tokens: int = 0
    companions: tuple[str, ...] = ()
    cipher_bytes: int = 0
    rounds: str = TURNS
    share_numbers: int = 0
    staleness: int = 0
    form: dict[str, Any] = field(default_factory=dict)
    version: int = field(default=PROTOCOL_VERSION)

    @property
    def is_silent(self) -> bool:
        """Return whether clients send no code: they train alone."""
        return self.codec == "none"

    @property
    def sends_once(self) -> bool:
        """Return whether the code of each sample is sent once."""
        return self.release == "once"

    @property
    def is_parallel(self) -> bool:
        """Return whether all owners compute at once, and their batches are joined."""
        return self.rounds == PARALLEL

    @property
    def is_splitfed(self) -> bool:
        """Return whether owners average weights after rounds; a lone owner has none."""
        return self.rounds in (SPLITFED_V1, SPLITFED_V2) and self.clients > 1

    @property
    def has_copies(self) -> bool:
        """Return whether the server has a copy of its side for every owner."""
        return self.is_splitfed and self.rounds == SPLITFED_V1

    @property
    def has_rounds(self) -> bool:
        """Return whether owners meet in rounds, and do not hand a side on."""
        return self.is_parallel or self.is_splitfed

    @property
    def shares_side(self) -> bool:
        """Return whether several owners train one head and tail."""
        return self.heads == "shared" and self.clients > 1

    @property
    def side_travels(self) -> bool:
        """Return whether one client side goes from client to client."""
        return self.shares_side and not self.has_rounds

    @property
    def averages_side(self) -> bool:
        """Return whether owners average head and tail, by gradients or by weights."""
        return self.shares_side and self.has_rounds

    def to_json(self) -> str:
        """Return the one canonical text of the contract."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Contract":
        """Read a peer's contract; refuse unknown terms."""
        try:
            terms = json.loads(text)
            if not isinstance(terms, dict):
                raise TypeError("not an object")
            for name in _TUPLES:
                terms[name] = tuple(terms[name])
            return cls(**terms)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ContractError(f"not a contract: {error}") from error

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical text."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def check_same(self, client: "Contract") -> None:
        """Raise with every term in which a client's contract differs from this one."""
        mine, theirs = asdict(self), asdict(client)
        different = [
            f"{name}: client has {theirs[name]!r}, server has {mine[name]!r}"
            for name in mine
            if mine[name] != theirs[name]
        ]
        if different:
            raise ContractError("the contracts differ in " + "; ".join(different))

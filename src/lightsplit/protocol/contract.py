"""All that client and server must agree on before the first step.

Both sides build the contract from their own settings; its SHA-256 is what they compare.
A projection is in it as a seed and a fingerprint, never as a matrix.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from lightsplit.errors import ContractError

PROTOCOL_VERSION = 2


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
        fingerprint: of what the codec drew from its seed.
        seed: of the run.
        clients: how many take part.
        batch_size: the largest batch of a step.
        turn_steps: steps per turn; 0 is a whole epoch.
        format: wire formats of the four messages.
        rounding: how their numbers are rounded.
        output_codec: name of the codec at the back cut.
        output_size: values per sample at the back cut; 0 is the whole output.
        output_fingerprint: of what the output codec drew from its seed.
        hand_off: format of a side that travels.
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
    version: int = field(default=PROTOCOL_VERSION)

    def to_json(self) -> str:
        """Return the one canonical text of the contract."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Contract":
        """Read a peer's contract; anything but the known terms is refused."""
        try:
            terms = json.loads(text)
            if not isinstance(terms, dict):
                raise TypeError("not an object")
            for name in ("activation_shape", "output_shape"):
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

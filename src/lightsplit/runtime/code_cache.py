"""The codes that clients have sent once, as the server keeps them.

    Release(first, codes) ──► rows first, first + 1 … of the client's samples
    Recall(numbers)       ──► the codes of these samples

A client's training and test samples are counted apart, each from 0 and in order. A code
that is there already may come again as it was, after a broken line. Another code of
the same sample is refused: no sample has two.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from lightsplit.codecs import Code
from lightsplit.errors import ProtocolError, RunError

PREFIX = "released."
MOST_TEST_SAMPLES = 2**20  # the batches of a client limit its training samples
_POOLS = {True: "train", False: "test"}


@dataclass
class _Pool:
    """Codes in the order of their numbers, in as many pieces as they came."""

    pieces: list[Code] = field(default_factory=list)
    count: int = 0

    def add(self, code: Code) -> None:
        self.pieces.append(code)
        self.count += len(code.values)

    def rows(self, numbers: Tensor) -> Code:
        if len(self.pieces) > 1:
            self.pieces = [_joined(self.pieces)]
        (whole,) = self.pieces
        return Code(whole.values[numbers], tuple(one[numbers] for one in whole.side))


class CodeCache:
    """Codes by client, kind of sample and number."""

    def __init__(self) -> None:
        self._pools: dict[tuple[int, bool], _Pool] = {}

    def count(self, client: int, *, is_training: bool) -> int:
        """Return how many codes of a client there are."""
        pool = self._pools.get((client, is_training))
        return 0 if pool is None else pool.count

    def add(self, client: int, first: int, code: Code, *, is_training: bool) -> None:
        """Keep the codes of samples from number ``first`` on.

        Raises:
            ProtocolError: codes are missing before them, or another code of one of
                these samples is there.
        """
        known, more = self.count(client, is_training=is_training), len(code.values)
        if first + more <= known:
            self._check_same(client, first, code, is_training=is_training)
            return
        if first != known:
            raise ProtocolError(
                f"expected the code of {_POOLS[is_training]} sample {known} of client "
                f"{client} next, got samples {first} to {first + more - 1}",
                code="out-of-order",
            )
        if not is_training and first + more > MOST_TEST_SAMPLES:
            raise ProtocolError(
                f"expected at most {MOST_TEST_SAMPLES} test samples, got more",
                code="too-large",
            )
        self._pools.setdefault((client, is_training), _Pool()).add(code)

    def rows(self, client: int, numbers: Tensor, *, is_training: bool) -> Code:
        """Return the codes of the samples of these numbers."""
        known = self.count(client, is_training=is_training)
        low, high = int(numbers.min()), int(numbers.max())
        if low < 0 or high >= known:
            raise ProtocolError(
                f"client {client} has released {known} codes of {_POOLS[is_training]} "
                f"samples, got a step with samples {low} to {high}",
                code="out-of-order",
            )
        return self._pools[client, is_training].rows(numbers.long())

    def state(self) -> dict[str, Tensor]:
        """Return all codes as named tensors."""
        found = {}
        for (client, is_training), pool in sorted(self._pools.items()):
            whole = pool.rows(torch.arange(pool.count))
            name = f"{PREFIX}{client}.{_POOLS[is_training]}"
            for place, tensor in enumerate((whole.values, *whole.side)):
                found[f"{name}.{place}"] = tensor
        return found

    def load(self, state: dict[str, Tensor]) -> None:
        """Replace all codes by those of a state that ``state()`` returned."""
        found: dict[tuple[int, bool], dict[int, Tensor]] = {}
        for key, tensor in state.items():
            client, is_training, place = _parsed(key)
            found.setdefault((client, is_training), {})[place] = tensor
        self._pools = {}
        for owner, tensors in found.items():
            first, *side = (tensors[place] for place in sorted(tensors))
            self._pools[owner] = _Pool([Code(first, tuple(side))], len(first))

    def _check_same(
        self, client: int, first: int, code: Code, *, is_training: bool
    ) -> None:
        numbers = torch.arange(first, first + len(code.values))
        known = self.rows(client, numbers, is_training=is_training)
        pairs = zip((known.values, *known.side), (code.values, *code.side), strict=True)
        if not all(torch.equal(mine, theirs) for mine, theirs in pairs):
            raise ProtocolError(
                f"expected each code once, got other codes of {_POOLS[is_training]} "
                f"samples {first} to {int(numbers[-1])} of client {client}",
                code="refused",
            )


def _joined(pieces: list[Code]) -> Code:
    sides = zip(*(piece.side for piece in pieces), strict=True)
    return Code(
        torch.cat([piece.values for piece in pieces]),
        tuple(torch.cat(parts) for parts in sides),
    )


def _parsed(key: str) -> tuple[int, bool, int]:
    client, _, rest = key.removeprefix(PREFIX).partition(".")
    pool, _, place = rest.partition(".")
    kinds = {name: is_training for is_training, name in _POOLS.items()}
    if not client.isdecimal() or pool not in kinds or not place.isdecimal():
        raise RunError(f"the state has released codes of no client: {key}")
    return int(client), kinds[pool], int(place)

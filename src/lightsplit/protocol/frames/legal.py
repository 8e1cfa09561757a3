"""The layouts that a contract allows for one kind of message.

    Enumerated   one layout for each number of samples, found by trying all of them
    ByRows       a row per token: any number of rows up to a bound

Both are asked with the layout that a message claims, before memory is taken for it.
"""

from collections.abc import Callable
from typing import Protocol

from lightsplit.codecs.base import Layout, TensorSpec
from lightsplit.errors import CodecError, ConfigError

LayoutOf = Callable[[int], Layout]


class Legal(Protocol):
    """All layouts that a kind of message may have."""

    def sizes(self, claimed: Layout, bound: int) -> list[int]:
        """Return the numbers of rows up to ``bound`` that give this layout."""
        ...

    @property
    def first(self) -> Layout:
        """The layout of the fewest rows, as an example."""
        ...

    @property
    def most_bytes(self) -> int:
        """The bytes of the longest layout."""
        ...


class Enumerated:
    """Every layout from 1 to ``largest`` samples."""

    def __init__(self, layout: LayoutOf, largest: int) -> None:
        self._known: dict[TensorSpec, list[tuple[int, Layout]]] = {}  # by values
        for size in range(1, largest + 1):
            try:
                known = layout(size)
            except CodecError:  # a codec may need, say, an even number of samples
                continue
            self._known.setdefault(known.values, []).append((size, known))
        if not self._known:
            raise ConfigError(f"the codec takes no batch of 1 to {largest} samples")

    def sizes(self, claimed: Layout, bound: int) -> list[int]:
        """Return the numbers of samples up to ``bound`` that give this layout."""
        known = self._known.get(claimed.values, ())
        return [
            size for size, legal in known if size <= bound and legal.allows(claimed)
        ]

    @property
    def first(self) -> Layout:
        """The layout of the smallest batch."""
        ((_, layout), *_) = next(iter(self._known.values()))
        return layout

    @property
    def most_bytes(self) -> int:
        """The bytes of the longest layout."""
        every = (layout for known in self._known.values() for _, layout in known)
        return max(layout.code_bytes for layout in every)


class ByRows:
    """Every layout from 1 to ``largest`` rows, of a codec with a row for each."""

    def __init__(self, layout: LayoutOf, largest: int) -> None:
        self._layout = layout
        self._largest = largest

    def sizes(self, claimed: Layout, bound: int) -> list[int]:
        """Return the number of rows, if this layout has at most ``bound``."""
        rows = claimed.values.shape[0] if claimed.values.shape else 0
        fits = 1 <= rows <= bound and self._layout(rows).allows(claimed)
        return [rows] if fits else []

    @property
    def first(self) -> Layout:
        """The layout of one row."""
        return self._layout(1)

    @property
    def most_bytes(self) -> int:
        """The bytes of the longest layout."""
        return self._layout(self._largest).code_bytes

"""Registries that map names to constructors, one per family of parts.

A part can live outside this package: an installed distribution that declares an entry
point in the family's group is found by its name, like the parts that come with us.

    [project.entry-points."lightsplit.codecs"]
    mine = "my_package.codec:MyCodec"
"""

import difflib
from collections.abc import Callable
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar, cast

from lightsplit.errors import ConfigError, UnknownNameError

T = TypeVar("T")


class Registry(Generic[T]):
    """The parts of one kind by the names used in experiment files and tables.

    Args:
        kind: the word for such a part in messages.
        group: the entry-point group in which other packages offer parts; None if they
            cannot.
    """

    def __init__(self, kind: str, group: str | None = None) -> None:
        self.kind = kind
        self.group = group
        self._entries: dict[str, Callable[..., T]] = {}

    def register(self, name: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
        """Return a decorator that registers a class or function under ``name``."""
        if name in self._entries:
            raise ConfigError(f"{self.kind} {name!r} is already registered")

        def enter(part: Callable[..., T]) -> Callable[..., T]:
            self._entries[name] = part
            return part

        return enter

    def names(self) -> list[str]:
        """Return the registered names in alphabetical order."""
        return sorted({*self._entries, *self._plug_ins})

    def get(self, name: str) -> Callable[..., T]:
        """Return the constructor called ``name``."""
        if name in self._entries:
            return self._entries[name]
        if name in self._plug_ins:
            found = self._load(self._plug_ins[name])
            # A module may have registered its part itself, wrapped in a constructor.
            return self._entries.setdefault(name, found)
        raise UnknownNameError(unknown_name(self.kind, name, self.names()))

    def is_plug_in(self, name: str) -> bool:
        """Say whether the part called ``name`` comes from another package."""
        return name in self._plug_ins

    def create(self, name: str, **options: object) -> T:
        """Build the part called ``name`` with ``options``."""
        return self.get(name)(**options)

    @cached_property
    def _plug_ins(self) -> dict[str, EntryPoint]:
        if self.group is None:
            return {}
        return {entry.name: entry for entry in entry_points(group=self.group)}

    def _load(self, entry: EntryPoint) -> Callable[..., T]:
        try:
            return cast("Callable[..., T]", entry.load())
        except Exception as error:
            raise ConfigError(
                f"{self.kind} {entry.name!r} cannot be loaded from {entry.value}: "
                f"{type(error).__name__}: {error}"
            ) from error


def unknown_name(kind: str, name: str, known: list[str]) -> str:
    """Return the message for a name that is not among ``known``."""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"unknown {kind} {name!r}; known: {', '.join(known) or 'none'}{hint}"

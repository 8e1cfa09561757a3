"""Names to constructors, one registry per family of parts."""

import difflib
from collections.abc import Callable
from typing import Generic, TypeVar

from lightsplit.errors import ConfigError, UnknownNameError

T = TypeVar("T")


class Registry(Generic[T]):
    """The parts of one kind by the names used in experiment files and tables."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, Callable[..., T]] = {}

    def register(self, name: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
        """Return a decorator that enters a class or function under ``name``."""
        if name in self._entries:
            raise ConfigError(f"{self.kind} {name!r} is already registered")

        def enter(part: Callable[..., T]) -> Callable[..., T]:
            self._entries[name] = part
            return part

        return enter

    def names(self) -> list[str]:
        """Return the registered names in alphabetical order."""
        return sorted(self._entries)

    def get(self, name: str) -> Callable[..., T]:
        """Return the constructor called ``name``."""
        if name not in self._entries:
            raise UnknownNameError(unknown_name(self.kind, name, self.names()))
        return self._entries[name]

    def create(self, name: str, **options: object) -> T:
        """Build the part called ``name`` with ``options``."""
        return self.get(name)(**options)


def unknown_name(kind: str, name: str, known: list[str]) -> str:
    """Return the message for a name that is not among ``known``."""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"unknown {kind} {name!r}; known: {', '.join(known) or 'none'}{hint}"

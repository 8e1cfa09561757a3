"""An attack: from what a server holds to what the client wanted to keep.

    ServerView ─┐
                ├─► attack ─► images, labels      scored by the audit
    Knowledge ──┘

What an attack can do is in ``capabilities.py``. An attack cannot reach a client or its
data: import-linter keeps this package away from the runtime, the transports and the
readers of data.
"""

from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeVar, cast

from lightsplit.attacks.knowledge import Knowledge
from lightsplit.errors import AuditError
from lightsplit.part_facts import PartFacts
from lightsplit.part_options import Options
from lightsplit.registry import Registry

Budget = Literal["quick", "short", "full"]
Progress = Callable[[int, int], None]  # steps done, steps in all
Kind = Literal[  # in this order
    "trivial", "oracle", "unaided", "published", "labels", "facts"
]


def silent(_done: int, _total: int) -> None:
    """Report nothing."""


class Attack(ABC):
    """The facts that every attack states about itself.

    Attributes:
        name: the registered name.
        kind: its purpose: a floor, a ceiling, what a server can do without anybody's
            help, a published attack, labels, or facts about samples.
        forms: ``published`` (lift the code, then run the released pipeline) and
            ``adaptive`` (put the codec inside the attacker's own model); a single empty
            name where there is no choice.
        needs: the fields of Knowledge that its constructor takes, by those names.
        runs_by_default: whether an audit runs it without being asked for it.
        truths: the kinds of truth that it works on: ``image``, ``table``, ``text``.
        threat_model: who could do this, in a sentence.
        cost: its time or work, in a few words.
        facts: where it was published, what it assumes, and how close this is to it.
        options: the options that a user gave it; its label shows them.
        notes: remarks for a reader of the figures.
        converged: whether more effort of the same kind would hardly help; None if
            effort does not matter, or if this was not checked.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind]
    forms: ClassVar[tuple[str, ...]] = ("",)
    needs: ClassVar[tuple[str, ...]] = ()
    runs_by_default: ClassVar[bool] = False
    truths: ClassVar[tuple[str, ...]] = ("image",)
    threat_model: ClassVar[str]
    cost: ClassVar[str]
    facts: ClassVar[PartFacts] = PartFacts()

    def __init__(
        self, *, form: str = "", budget: Budget = "quick", seed: int = 0
    ) -> None:
        if form not in self.forms:
            known = ", ".join(repr(known) for known in self.forms)
            raise AuditError(f"{self.name} has the forms {known}, got {form!r}")
        self.form = form
        self.budget = budget
        self.seed = seed
        self.options: Options = {}
        self.notes: list[str] = []
        self.converged: bool | None = None

    @classmethod
    def check_shapes(cls, activation: tuple[int, ...], image: tuple[int, ...]) -> None:
        """Raise AuditError if its networks cannot be built for these shapes."""
        del activation, image  # most attacks take any

    @classmethod
    def takes_any_shape(cls) -> bool:
        """Return whether ``check_shapes`` accepts every shape."""
        return cls.check_shapes.__func__ is Attack.check_shapes.__func__  # type: ignore[attr-defined]

    @classmethod
    def given_arguments(cls) -> frozenset[str]:
        """Return the constructor's arguments that are no options of a user."""
        return frozenset((*cls.needs, "form", "budget", "seed"))


A = TypeVar("A", bound=Attack)

ATTACKS: Registry[Attack] = Registry("attack", "lightsplit.attacks")


def find_attack(name: str) -> type[Attack]:
    """Return the class that is registered under ``name``."""
    return cast(type[Attack], ATTACKS.get(name))


def equip(attack: type[A], knowledge: Knowledge, **options: Any) -> A | None:
    """Return the attack with the knowledge it needs; None if the run lacks any of it.

    An attack is given the fields that it names in ``needs`` and no others.
    """
    known = {name: getattr(knowledge, name) for name in attack.needs}
    if any(value is None for value in known.values()):
        return None
    return attack(**known, **options)


def at_least(attack: str, least: float, **values: float | None) -> None:
    """Raise AuditError for an option below ``least``; None stands for a default."""
    for name, value in values.items():
        if value is not None and value < least:
            raise AuditError(
                f"the option {name!r} of {attack} must be at least {least}, got {value}"
            )

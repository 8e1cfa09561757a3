"""Which attacks an audit runs, in which form, and how much of everything it takes."""

from dataclasses import dataclass
from typing import Literal, cast, get_args

from lightsplit.attacks import ATTACKS, Attack, Budget
from lightsplit.errors import ConfigError
from lightsplit.registry import unknown_name

FormChoice = Literal["published", "adaptive", "both"]
Planned = tuple[type[Attack], str]  # an attack and its form
LADDER = ("linear", "decoder", "whitebox")
TARGETS: dict[Budget, int] = {"quick": 64, "full": 1000}
AUXILIARY: dict[Budget, int] = {"quick": 2000, "full": 30000}
TRAINING_SAMPLES = 1024


@dataclass(frozen=True)
class AuditOptions:
    """What to attack with, and how hard.

    Attributes:
        attacks: names; none is the oracle ladder and label inference. ``all`` is all.
        form: of attacks that have several.
        images: how many to reconstruct; 0 is 64 for ``quick`` and 1,000 for ``full``.
        budget: ``quick`` to see that it works, ``full`` to compare codecs.
        auxiliary: images that the attacker has; 0 is 2,000 and 30,000.
        client: whose images are reconstructed.
        seed: of everything random in the attacks.
        device: where they run.
    """

    attacks: tuple[str, ...] = ()
    form: FormChoice = "both"
    images: int = 0
    budget: Budget = "quick"
    auxiliary: int = 0
    client: int = 0
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.images < 0 or self.auxiliary < 0:
            raise ConfigError(
                "images and auxiliary must be 0 or more, got "
                f"{self.images} and {self.auxiliary}"
            )
        for name, known in (("form", FormChoice), ("budget", Budget)):
            if getattr(self, name) not in get_args(known):
                raise ConfigError(
                    unknown_name(name, getattr(self, name), list(get_args(known)))
                )

    @property
    def target_count(self) -> int:
        """How many images are reconstructed at most."""
        return self.images or TARGETS[self.budget]

    @property
    def auxiliary_count(self) -> int:
        """How many images the attacker has at most."""
        return self.auxiliary or AUXILIARY[self.budget]


def plan(options: AuditOptions) -> list[Planned]:
    """Return the attacks to run and their forms; the trivial ones always, and first."""
    known = {name: cast(type[Attack], ATTACKS.get(name)) for name in ATTACKS.names()}
    asked = set(options.attacks)
    if not asked:
        asked = {name for name, attack in known.items() if attack.kind == "labels"}
        asked |= set(LADDER)
    if "all" in asked:
        asked = set(known)
    for name in asked:
        ATTACKS.get(name)  # refuses what is unknown
    chosen = [
        attack
        for name, attack in known.items()
        if name in asked or attack.kind == "trivial"
    ]
    order = ("trivial", "oracle", "published", "labels")
    chosen.sort(key=lambda attack: order.index(attack.kind))
    return [(attack, form) for attack in chosen for form in _forms(attack, options)]


def _forms(attack: type[Attack], options: AuditOptions) -> tuple[str, ...]:
    if len(attack.forms) == 1 or options.form == "both":
        return attack.forms
    return tuple(form for form in attack.forms if form == options.form)

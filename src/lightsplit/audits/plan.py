"""Which attacks an audit runs, in which form, and how much of everything it takes."""

from dataclasses import dataclass
from typing import Literal, cast, get_args

from lightsplit.attacks import (
    ATTACKS,
    Attack,
    Budget,
    LabelInference,
    OnlineReconstruction,
)
from lightsplit.errors import AuditError, ConfigError
from lightsplit.experiments import Job
from lightsplit.registry import unknown_name

FormChoice = Literal["published", "adaptive", "both"]
Planned = tuple[type[Attack], str]  # an attack and its form
LADDER = ("linear", "decoder", "whitebox")
Source = Literal["others", "test"]
TARGETS: dict[Budget, int] = {"quick": 64, "short": 256, "full": 1000}
AUXILIARY: dict[Budget, int] = {"quick": 2000, "short": 10000, "full": 30000}
TRAINING_SAMPLES = 1024


@dataclass(frozen=True)
class AuditOptions:
    """What to attack with, and how hard.

    Attributes:
        attacks: names; none is the oracle ladder and label inference. ``all`` is all.
        form: of attacks that have several.
        images: how many to reconstruct; 0 is 64 for ``quick``, 256 for ``short`` and
            1,000 for ``full``.
        budget: ``quick`` to see that it works, ``short`` for an hour or two, ``full``
            to compare codecs.
        auxiliary: images that the attacker has; 0 is 2,000, 10,000 and 30,000.
        auxiliary_from: ``others`` are the other clients' images (with one client the
            test images, shuffled), ``test`` the first of the test images as they lie.
        client: whose images are reconstructed.
        seed: of everything random in the attacks.
        device: where they run.
        during: whether the run is trained once more, with attacks that watch.
        score_every: steps between two looks at what attacks that learn make of the
            batch at hand; 0 is never.
        save_every: steps between two saves of such attacks; 0 is never.
        resume: whether to go on where an interrupted audit was saved.
    """

    attacks: tuple[str, ...] = ()
    form: FormChoice = "both"
    images: int = 0
    budget: Budget = "quick"
    auxiliary: int = 0
    auxiliary_from: Source = "others"
    client: int = 0
    seed: int = 0
    device: str = "cpu"
    during: bool = False
    score_every: int = 100
    save_every: int = 200
    resume: bool = False

    def __post_init__(self) -> None:
        for name in ("images", "auxiliary", "score_every", "save_every"):
            if getattr(self, name) < 0:
                raise ConfigError(
                    f"{name} must be 0 or more, got {getattr(self, name)}"
                )
        choices = ("form", FormChoice), ("budget", Budget), ("auxiliary_from", Source)
        for name, known in choices:
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


def watches(attack: type[Attack]) -> bool:
    """Say whether the attack has something to see while training goes on."""
    return issubclass(attack, LabelInference | OnlineReconstruction)


def expected(options: AuditOptions, *, during: bool) -> list[Planned]:
    """Return the attacks of the plan that are made in training, or after it.

    In training that are those which watch, and the trivial ones for those which learn.
    """
    planned = plan(options)
    learning = [one for one in planned if issubclass(one[0], OnlineReconstruction)]
    if not during:
        for attack, _ in learning:
            if attack.name in options.attacks:
                raise ConfigError(
                    f"{attack.name} learns in training: use --during, in a sweep file "
                    "during = true"
                )
        return [one for one in planned if one not in learning]
    watching = [one for one in planned if watches(one[0])]
    if not watching:
        raise ConfigError(
            "--during: name an attack that learns or infers labels in training"
        )
    beside = [one for one in planned if learning and one[0].kind == "trivial"]
    return [*beside, *watching]


def suited(planned: list[Planned], options: AuditOptions, job: Job) -> list[Planned]:
    """Return the attacks that can be built for the run.

    One that was asked for by its name is not left out but refused, with the reason.
    """
    return [
        (attack, form)
        for attack, form in planned
        if _fits(attack, job, is_named=attack.name in options.attacks)
    ]


def _fits(attack: type[Attack], job: Job, *, is_named: bool) -> bool:
    try:
        attack.check_shapes(job.contract.activation_shape, job.dataset.train.shape)
    except AuditError:
        if is_named:
            raise
        return False
    return True


def _forms(attack: type[Attack], options: AuditOptions) -> tuple[str, ...]:
    if len(attack.forms) == 1 or options.form == "both":
        return attack.forms
    return tuple(form for form in attack.forms if form == options.form)

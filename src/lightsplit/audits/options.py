"""The options of an audit: which attacks, how hard, and with how much of everything."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from lightsplit.attacks import Budget
from lightsplit.errors import ConfigError
from lightsplit.part_options import parse_part
from lightsplit.registry import unknown_name

FormChoice = Literal["published", "adaptive", "both"]
Source = Literal["others", "test"]
IMAGES: dict[Budget, int] = {"quick": 64, "short": 256, "full": 1000}
AUXILIARY: dict[Budget, int] = {"quick": 2000, "short": 10000, "full": 30000}
EVERY_ATTACK = "all"  # in place of a name
NEVER = "never"  # in place of a number of steps


@dataclass(frozen=True)
class AuditOptions:
    """Which attacks to run, and how hard.

    Attributes:
        attacks: names, each with its options if it has any (``decoder:blocks=4``).
            Without names those run that run by default; ``all`` means every attack.
        form: of attacks that have several.
        images: how many to reconstruct; by default 64 for ``quick``, 256 for ``short``
            and 1,000 for ``full``.
        budget: ``quick`` to see that it works, ``short`` for an hour or two, ``full``
            to compare codecs.
        auxiliary: images that the attacker has; by default 2,000, 10,000 and 30,000.
        auxiliary_from: ``others`` are the other clients' images (with one client the
            test images, shuffled), ``test`` the first test images in their own order.
        client: whose images are reconstructed.
        seed: of everything random in the attacks.
        device: where they run.
        task: where the task of the run is now, if it has moved since.
        data: where the files of an owner who joined are now, if they have moved.
        secret: file with the secret of an owner who joined, if it was given one.
        during: whether to train the run once more, with attacks that watch.
        score_every: steps between two scores of attacks that observe, on the batch at
            hand; None is never.
        save_every: steps between two saves of such attacks; None is never.
        resume: whether to resume an interrupted audit from where it was saved.
    """

    attacks: tuple[str, ...] = ()
    form: FormChoice = "both"
    images: int | None = None
    budget: Budget = "quick"
    auxiliary: int | None = None
    auxiliary_from: Source = "others"
    client: int = 0
    seed: int = 0
    device: str = "cpu"
    task: str | None = None
    data: str | None = None
    secret: str | None = None
    during: bool = False
    score_every: int | None = 100
    save_every: int | None = 200
    resume: bool = False

    def __post_init__(self) -> None:
        for name in ("images", "auxiliary", "score_every", "save_every"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ConfigError(
                    f"{name} must be at least 1, got {getattr(self, name)}"
                )
        choices = ("form", FormChoice), ("budget", Budget), ("auxiliary_from", Source)
        for name, known in choices:
            if getattr(self, name) not in get_args(known):
                raise ConfigError(
                    unknown_name(name, getattr(self, name), list(get_args(known)))
                )

    def names(self, attack: str) -> bool:
        """Return whether an attack was asked for by its name."""
        return any(parse_part(text)[0] == attack for text in self.attacks)

    @property
    def asked(self) -> dict[str, Any]:
        """How many images were asked for; a run may have fewer."""
        return {
            "images": self.target_count,
            "auxiliary": self.auxiliary_count,
            "auxiliary_from": self.auxiliary_from,
        }

    @property
    def target_count(self) -> int:
        """The most images that are reconstructed."""
        return self.images or IMAGES[self.budget]

    @property
    def auxiliary_count(self) -> int:
        """The most images that the attacker has."""
        return self.auxiliary or AUXILIARY[self.budget]

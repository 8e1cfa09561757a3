"""UnSplit: a guess of the image and a clone of the head, improved in turns.

Erdogan, Küpçü and Çiçek, "UnSplit: data-oblivious model inversion, model stealing, and
label inference attacks against split learning", WPES 2022.

    published   code ──lifted by R──► activation ◄─── clone(x)      the released loop
    adaptive    code ◄──the codec──── activation ◄─── clone(x)      R is in the contract

The published form cannot fit a lifted code: R Rᵀ z has negative values, and a clone
that ends in a ReLU has none. Its picture then fades to black whatever the defence does,
so only the adaptive form says anything about a projection.

Where we differ from the released code: every image has a clone of its own unless
``carry_over`` is set, so that all images are searched at once. What may surprise: the
clone's first layer can absorb any brightness while the term on x² pulls the picture to
black. Read scale-free scores beside the squared error, and the all-black image beside
both.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from lightsplit.attacks.base import ATTACKS, Budget, Kind, Progress, at_least, silent
from lightsplit.attacks.capabilities import Reconstructs
from lightsplit.attacks.lifts import lifted
from lightsplit.attacks.unsplit_clones import Observed
from lightsplit.attacks.unsplit_loop import Schedule, invert
from lightsplit.attacks.view import ServerView
from lightsplit.codecs import Codec
from lightsplit.part_facts import PartFacts

BUDGETS: dict[Budget, Schedule] = {
    "quick": Schedule(main_iterations=20, inner_iterations=50),
    "short": Schedule(main_iterations=200, inner_iterations=100),
    "full": Schedule(),
}


@dataclass(frozen=True)
class Settings:
    """Rate and weights of the search; the defaults are the released ones.

    Attributes:
        lr: of the images and of the clones.
        variation: weight of the picture's total variation.
        magnitude: weight of its mean square.
    """

    lr: float = Schedule.lr
    variation: float = Schedule.variation
    magnitude: float = Schedule.magnitude


RELEASED = Settings()


@ATTACKS.register("unsplit")
class UnSplit(Reconstructs):
    """Searches an image and a copy of the head that together explain the code.

    Attributes:
        schedule: how long and how hard it searches; by default ``main_iterations`` and
            ``inner_iterations`` are the budget's.
    """

    name = "unsplit"
    kind: ClassVar[Kind] = "published"
    forms = ("published", "adaptive")
    needs = ("image_shape", "architecture")
    threat_model = "a server that knows the head's layers, but no weight and no image"
    cost = (
        "quick: 2,000 steps, full: 200,000; ten images take minutes and hours, so "
        "choose --images"
    )
    facts = PartFacts(
        source="Erdogan, Küpçü, Çiçek, WPES 2022",
        assumes="the head's layers",
        status="faithful",
    )

    def __init__(
        self,
        *,
        image_shape: tuple[int, int, int],
        architecture: Callable[[], nn.Module],
        main_iterations: int | None = None,
        inner_iterations: int | None = None,
        carry_over: bool = False,
        settings: Settings = RELEASED,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        counts = {
            "main_iterations": main_iterations,
            "inner_iterations": inner_iterations,
        }
        at_least(self.name, 1, **counts)
        at_least(self.name, 0, **asdict(settings))
        planned = BUDGETS[self.budget]
        self.schedule = Schedule(
            main_iterations or planned.main_iterations,
            inner_iterations or planned.inner_iterations,
            **asdict(settings),
        )
        self._image_shape = image_shape
        self._architecture = architecture
        self._carry_over = carry_over
        if self.schedule.main_iterations < BUDGETS["full"].main_iterations:
            self.notes.append(
                f"unsplit ran {self.schedule.main_iterations} of the published "
                f"{BUDGETS['full'].main_iterations} main iterations: enough to see it "
                "work, too few to rank defences"
            )

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return an image for every code of ``view.codes`` (N, C, H, W), unclipped."""
        (images,) = invert(
            [observed(view.codes, view.codec, self.form, seed=self.seed)],
            self._architecture,
            image_shape=self._image_shape,
            schedule=self.schedule,
            carry_over=self._carry_over,
            progress=progress,
        )
        return images


def observed(codes: Tensor, codec: Codec, form: str, *, seed: int = 0) -> Observed:
    """Return the rows that the clones are fitted to in a form of the attack."""
    if form == "adaptive":
        return Observed(codes.detach(), codec, seed)
    return Observed(lifted(codes.detach(), codec), None, seed)

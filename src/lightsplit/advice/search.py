"""The search: cut x codec x objectives as a sweep, each cell with its client's FLOPs.

    settings, choices ──make_search──► Sweep ──sweeps.expand──► cells
    cells ──price_cells──► the cells that can be built, and what a client computes

Two yardsticks are always in it, without objectives: raw, and none, which is what the
clients reach without the server. Every other codec is tried with every set of
objectives that it can have.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lightsplit.errors import ConfigError
from lightsplit.experiments import Experiment, from_settings
from lightsplit.experiments.computation import measure_computation
from lightsplit.models import CUTS
from lightsplit.sweeps import Cell, Sweep

Settings = Mapping[str, Any]

YARDSTICKS = ("none", "raw")
CODECS = (
    "lightsplit-f:ratio=8",
    "lightsplit-b:bits=16",
    "lightsplit-b:bits=12,encoder_hidden=128",
)
OBJECTIVES = (
    "none",
    "class-codes+conditional-entropy:budget=3",
    "conditional-entropy:budget=4+bit-flips:rate=0.1",
)
LADDER = ("linear", "decoder", "exact-table", "exact-table:exemplar=true")
NO_OBJECTIVES = "none"


@dataclass(frozen=True)
class Choices:
    """What a search tries; empty stands for the usual.

    Attributes:
        cuts: names of cuts; by default all that the model has names for.
        codecs: codecs with their options; ``raw`` and ``none`` are always added.
        bits: short for codecs ``lightsplit-b:bits=…``.
        objectives: sets of objectives, each joined by ``+``; ``none`` is no objective.
    """

    cuts: tuple[str, ...] = ()
    codecs: tuple[str, ...] = ()
    bits: tuple[int, ...] = ()
    objectives: tuple[str, ...] = ()

    @property
    def are_usual(self) -> bool:
        """Whether nothing was chosen."""
        return not (self.cuts or self.codecs or self.bits or self.objectives)


class Priced(NamedTuple):
    """A cell and the operations of its client per sample, forward and backward."""

    cell: Cell
    client_flops: int


def make_search(name: str, settings: Settings, choices: Choices) -> Sweep:
    """Return the sweep over the choices, with ``settings`` in every cell."""
    task = from_settings({**_single(settings), "codec": "raw"}).make_task()
    cuts = choices.cuts or _named_cuts(task.model_name, settings)
    methods = list(_fitting(settings, choices, cuts))
    cells = [
        {**({"cut": cut} if cut else {}), **method}
        for cut in cuts or ("",)
        for method in methods
    ]
    return Sweep(
        name=name,
        title=f"Which setting for {task.name}?",
        common=dict(settings),
        cells=tuple(cells),
    )


def price_cells(cells: Sequence[Cell]) -> list[Priced]:
    """Return what a client computes in each cell; an impossible cell is refused."""
    priced = []
    for cell in cells:
        try:
            priced.append(Priced(cell, _client_flops(cell.experiment)))
        except ConfigError as error:
            raise ConfigError(f"the cell {cell.label}: {error}") from error
    return priced


def affordable(priced: Sequence[Priced], most_flops: float | None) -> list[Priced]:
    """Return the cells within the limit; refuse a limit that leaves none."""
    if most_flops is None:
        return list(priced)
    kept = [one for one in priced if one.client_flops <= most_flops]
    if not kept:
        least = min(priced, key=lambda one: one.client_flops)
        raise ConfigError(
            f"--max-client-flops {most_flops:g} leaves no setting: the cheapest, "
            f"{least.cell.label}, needs {least.client_flops:,} FLOPs a sample"
        )
    return kept


def _named_cuts(model: str | None, settings: Settings) -> tuple[str, ...]:
    """Return the cuts that the model has names for, unless a place was given."""
    if any(name.split(".")[-1] in ("head_until", "tail_from") for name in settings):
        return ()
    return CUTS[model].names if model in CUTS else ()


def _fitting(
    settings: Settings, choices: Choices, cuts: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the yardsticks, then every codec with every objective that suits it."""
    place = {**_single(settings), **({"cut": cuts[0]} if cuts else {})}
    for codec in (*YARDSTICKS, *_codecs(choices)):
        _client_flops(from_settings({**place, "codec": codec}))  # refuses a wrong one
    yield from ({"codec": codec} for codec in YARDSTICKS)
    for objectives in choices.objectives or OBJECTIVES:
        reasons = []
        for codec in _codecs(choices):
            method = {"codec": codec, **_objectives(objectives)}
            try:
                _client_flops(from_settings({**place, **_single(method)}))
            except ConfigError as error:
                reasons.append(f"{codec} with {objectives}: {error}")
            else:
                yield method
        if len(reasons) == len(_codecs(choices)) and choices.objectives:
            raise ConfigError(reasons[0])


def _codecs(choices: Choices) -> list[str]:
    chosen = [*choices.codecs, *(f"lightsplit-b:bits={k}" for k in choices.bits)]
    return [codec for codec in chosen or CODECS if codec not in YARDSTICKS]


def _objectives(text: str) -> dict[str, Any]:
    """Return a set of objectives as one value of a grid."""
    if text.strip() == NO_OBJECTIVES:
        return {}
    return {"objective": [[part.strip() for part in text.split("+")]]}


def _single(grid: Settings) -> dict[str, Any]:
    """Return the first of the experiments that the settings of a grid stand for."""
    return {k: v[0] if isinstance(v, list) else v for k, v in grid.items()}


def _client_flops(experiment: Experiment) -> int:
    """Return the client's operations; refuse parts that do not fit together."""
    client = measure_computation(experiment).client
    return client.forward_flops + client.backward_flops

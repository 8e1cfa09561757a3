"""The shapes of the paper's tables: what makes a row, a column and a cell."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shape:
    """One table of the paper.

    Attributes:
        name: in data/paper.csv and in file names.
        title, note: for people; the note says what to keep in mind.
        rows, columns: the settings that make up a row's and a column's heading.
        metric: what stands in a cell.
        where: settings that a run must have to belong here.
        least_columns: below so many the table is not worth showing.
    """

    name: str
    title: str
    note: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    metric: str = "best_test_accuracy"
    where: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    least_columns: int = 1


SHAPES = (
    Shape(
        "communication",
        "Communication at the cut (the paper's Table 1)",
        "GiB of code and code gradient over 100 epochs of 50,000 samples, as the paper "
        "counts (its “GB” is GiB). Output, output gradient, hand-offs and framing come "
        "on top: see bytes by message.",
        ("codec", "ratio"),
        ("dataset",),
        metric="two_message_gib",
        where=(("dataset", ("cifar10",)), ("codec", ("raw", "lightsplit-f"))),
    ),
    Shape(
        "utility",
        "Best test accuracy over datasets, skew, cut and heads (appendix, full grid)",
        "Best of all evaluations in %, as in the paper, which trains up to 2,000 "
        "epochs with a patience of 200 and names no optimizer, rate or batch size.",
        ("codec", "ratio", "cut", "heads"),
        ("dataset", "alpha"),
        where=(("wcc", (0,)), ("clients", (10,)), ("topology", ("u",))),
    ),
    Shape(
        "compaction",
        "Strength of within-class compaction λ at 8x",
        "Best accuracy relative to the matching raw run in %, in the raw rows the "
        "accuracy itself. The paper has CIFAR-10 only.",
        ("dataset", "codec", "cut", "heads"),
        ("wcc",),
        metric="relative_to_raw",
        where=(("ratio", (1, 8)), ("alpha", (0,)), ("clients", (10,))),
        least_columns=2,
    ),
    Shape(
        "clients",
        "Number of clients at 8x",
        "Best accuracy in %; cut l2, shared heads, IID. The paper has CIFAR only.",
        ("dataset", "codec"),
        ("clients",),
        where=(
            ("ratio", (1, 8)),
            ("alpha", (0,)),
            ("wcc", (0,)),
            ("cut", ("l2",)),
            ("heads", ("shared",)),
        ),
        least_columns=2,
    ),
    Shape(
        "lift-back",
        "Width m of the trained lift-back at 8x",
        "Best accuracy in %; column 0 is raw. The paper picks m per dataset by this "
        "table, on the test set.",
        ("dataset", "cut", "heads"),
        ("hidden",),
        where=(
            ("codec", ("raw", "lightsplit-l")),
            ("ratio", (1, 8)),
            ("alpha", (0,)),
            ("wcc", (0,)),
            ("clients", (10,)),
        ),
        least_columns=3,
    ),
    Shape(
        "unsplit",
        "UnSplit as published: foreground MSE over that of raw",
        "More than 1 would mean that less leaks. Read the trivial attackers beside it: "
        "the paper's values do not move with ratio, λ or seed, as those of an attack "
        "that ends in a black image would not.",
        ("codec", "wcc", "ratio", "cut"),
        ("dataset",),
        metric="mse_foreground_ratio",
        where=(("model", ("mnistnet",)),),
    ),
)

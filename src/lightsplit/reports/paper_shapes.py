"""The shapes of the paper's tables: their rows, columns and cells."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shape:
    """One table of the paper.

    Attributes:
        name: its name in data/paper.csv and in file names.
        title, note: texts of the page; the note says what to keep in mind.
        rows, columns: the settings that make up a row's and a column's heading.
        metric: the figure in a cell.
        where: settings that a run must have to belong here.
        attack: whose result is in a cell, as published; empty for none.
        least_columns: with fewer columns the table is not shown.
    """

    name: str
    title: str
    note: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    metric: str = "best_test_accuracy"
    where: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    least_columns: int = 1
    attack: str = ""


_L2 = (
    ("cut", ("l2",)),
    ("clients", (10,)),
    ("wcc", (0,)),
    ("topology", ("u",)),
)
_L2_SHARED = (*_L2, ("heads", ("shared",)))
_SDAR: dict[str, Any] = {
    "rows": ("codec", "wcc", "ratio"),
    "columns": ("cut", "topology"),
    "where": (("model", ("resnet20",)),),
    "attack": "sdar",
}
_FORA: dict[str, Any] = {
    "rows": ("codec", "wcc", "ratio"),
    "columns": ("dataset",),
    "where": (("model", ("mobilenet",)),),
}
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
        "Best accuracy relative to the matching raw run in %; raw rows show the "
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
        "A value above 1 would mean that less leaks. Read the trivial attackers beside "
        "it: the paper's values do not change with ratio, λ or seed, which is how an "
        "attack behaves that ends in a black image.",
        ("codec", "wcc", "ratio", "cut"),
        ("dataset",),
        metric="mse_foreground_ratio",
        where=(("model", ("mnistnet",)),),
    ),
    Shape(
        "utility-delta",
        "Accuracy against raw (the paper's figure of utility, top row)",
        "Points of best accuracy above the matching raw run.",
        ("codec", "ratio"),
        ("dataset", "alpha"),
        metric="delta_raw",
        where=(*_L2_SHARED, ("codec", ("lightsplit-f", "lightsplit-l", "learned-1x1"))),
    ),
    Shape(
        "head-ratio",
        "Private heads over shared heads (the paper's figure of utility, bottom row)",
        "Best accuracy with private heads over that with shared heads; 1 is no loss.",
        ("codec", "ratio"),
        ("dataset", "alpha"),
        metric="private_over_shared",
        where=(*_L2, ("heads", ("private",))),
    ),
    Shape(
        "lift-parameters",
        "Size |φ| of the trained lift-back (bars of the paper's figure)",
        "Millions of parameters at 8x; the paper prints one width per dataset.",
        ("dataset",),
        ("hidden",),
        metric="lift_parameters",
        where=(*_L2_SHARED, ("codec", ("lightsplit-l",)), ("ratio", (8,))),
    ),
    *(
        Shape(
            f"sdar-{metric}",
            f"SDAR as published: {metric.upper()}",
            "The paper's levels 4 and 7, in the U-shape and the vanilla topology.",
            metric=metric,
            **_SDAR,
        )
        for metric in ("mse", "ssim", "psnr", "lpips")
    ),
    *(
        Shape(
            f"sdar-bars-{metric}",
            f"SDAR: change of {metric.upper()} against raw (the paper's bars)",
            "In %. A codec that hides raises MSE and lowers SSIM.",
            metric=f"{metric}_change",
            **_SDAR,
        )
        for metric in ("mse", "ssim")
    ),
    *(
        Shape(
            f"{attack}-{metric}",
            f"{title} as published: {metric.upper()}",
            "MobileNet on CIFAR-10, level 2.",
            metric=metric,
            attack=attack,
            **_FORA,
        )
        for attack, title in (("fora", "FORA"), ("fora-reference", "FORA's reference"))
        for metric in ("ssim", "psnr", "lpips")
    ),
    *(
        Shape(
            f"unsplit-whole-{metric}",
            f"UnSplit as published, whole image: {metric.upper()}",
            "MnistNet at both of its cuts.",
            ("codec", "wcc", "ratio", "cut"),
            ("dataset",),
            metric=metric,
            where=(("model", ("mnistnet",)),),
            attack="unsplit",
        )
        for metric in ("mse", "ssim", "psnr", "lpips")
    ),
)

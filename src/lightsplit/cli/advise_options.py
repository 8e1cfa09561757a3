"""The options of ``lightsplit advise``."""

from pathlib import Path
from typing import Annotated

import typer

_LIMITS, _SEARCH, _AUDIT = "Limits", "What to try", "How to attack"

MaxReidentification = Annotated[
    float,
    typer.Option(
        help="most images, as a share, that the worst attack may name",
        rich_help_panel=_LIMITS,
    ),
]
MaxSsimGain = Annotated[
    float,
    typer.Option(
        help="most SSIM of the worst attack above the mean image of the class",
        rich_help_panel=_LIMITS,
    ),
]
MaxClientFlops = Annotated[
    float | None,
    typer.Option(
        help="most operations of a client per sample, forward and backward, such as "
        "5e6; settings above it are not trained",
        rich_help_panel=_LIMITS,
    ),
]
MaxAccuracyLoss = Annotated[
    float | None,
    typer.Option(
        help="how far below raw the test figure may be; 0.01 is a point of accuracy",
        rich_help_panel=_LIMITS,
    ),
]
Cuts = Annotated[
    list[str] | None,
    typer.Option(
        help="a named cut; repeat it; default: all that the model has",
        rich_help_panel=_SEARCH,
    ),
]
CodecNames = Annotated[
    list[str] | None,
    typer.Option(
        help="a codec, NAME or NAME:option=value,…; repeat it; raw and none are always "
        "tried; default: lightsplit-f 8x, and lightsplit-b with 16 bits and with 12 "
        "bits behind a hidden layer (encoder_hidden=128)",
        rich_help_panel=_SEARCH,
    ),
]
NumbersOfBits = Annotated[
    list[int] | None,
    typer.Option(
        help="short for --codec lightsplit-b:bits=…; repeat it",
        rich_help_panel=_SEARCH,
    ),
]
ObjectiveSets = Annotated[
    list[str] | None,
    typer.Option(
        help="a set of objectives joined by +, or none; repeat it; each is tried with "
        "every codec that can have it; default: none and two that hide",
        rich_help_panel=_SEARCH,
    ),
]
Grid = Annotated[
    str | None,
    typer.Option(
        help="a sweep file in place of the four options above "
        "(docs/experiment-files.md)",
        rich_help_panel=_SEARCH,
    ),
]
AttackNames = Annotated[
    list[str] | None,
    typer.Option(
        help="an attack of the ladder; repeat it; default: linear, decoder, "
        "exact-table and its nearest known image",
        rich_help_panel=_AUDIT,
    ),
]
BudgetName = Annotated[
    str | None,
    typer.Option(help="quick, short or full; default: quick", rich_help_panel=_AUDIT),
]
Images = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="images to reconstruct and to tell apart; default: 500",
        rich_help_panel=_AUDIT,
    ),
]
Auxiliary = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="images that the attacker has; default: 2,000, 10,000 or 30,000",
        rich_help_panel=_AUDIT,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(help="folder of the search; default: runs/advise-TASK"),
]

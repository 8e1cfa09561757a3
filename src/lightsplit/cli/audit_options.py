"""The options of ``lightsplit audit``; their meaning is that of AuditOptions."""

from pathlib import Path
from typing import Annotated

import typer

Run = Annotated[Path, typer.Argument(help="folder of a finished `train` run")]
AttackNames = Annotated[
    list[str] | None,
    typer.Option(
        help="name of an attack, may be repeated; `all` is all; default: the oracle "
        "ladder and label inference (see `lightsplit list attacks`)"
    ),
]
Form = Annotated[
    str,
    typer.Option(
        help="published: the released pipeline on the lifted code; adaptive: the codec "
        "inside the attacker's own model; or both"
    ),
]
Images = Annotated[
    int,
    typer.Option(
        min=0, help="images to reconstruct; 0: 64, 256 if short, 1000 if full"
    ),
]
BudgetName = Annotated[
    str,
    typer.Option(
        help="quick: minutes, cannot rank codecs; short: an hour or two; full: as long "
        "as it takes"
    ),
]
Auxiliary = Annotated[
    int,
    typer.Option(
        min=0, help="images the attacker has; 0: 2000, 10000 if short, 30000 if full"
    ),
]
AuxiliaryFrom = Annotated[
    str,
    typer.Option(
        help="others: the other clients' images, or with one client test images in "
        "random order; test: the first test images"
    ),
]
VictimIndex = Annotated[int, typer.Option(min=0, help="whose images are attacked")]
During = Annotated[
    bool,
    typer.Option(
        "--during",
        help="train the run once more, with attacks that learn at its server; label "
        "inference at each evaluation; other attacks that are named come after it",
    ),
]
ScoreEvery = Annotated[
    int,
    typer.Option(
        min=0, help="--during: steps between lines of audit-NAME.jsonl; 0: none"
    ),
]
SaveEvery = Annotated[
    int, typer.Option(min=0, help="--during: steps between saves; 0: never")
]
GoOn = Annotated[
    bool, typer.Option("--resume", help="--during: go on where it was interrupted")
]
AttackSeed = Annotated[int, typer.Option(min=0, help="of the attacks")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 …")]
EntriesAsJson = Annotated[
    bool, typer.Option("--json", help="print the entries and nothing else")
]

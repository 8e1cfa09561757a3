"""The options of ``lightsplit audit``; AuditOptions says what they mean."""

from pathlib import Path
from typing import Annotated

import typer

from lightsplit.audits.options import NEVER

Run = Annotated[
    Path,
    typer.Argument(
        help="folder of a finished `train` run, or of an owner who used `join --record`"
    ),
]
AttackNames = Annotated[
    list[str] | None,
    typer.Option(
        help="attack: NAME or NAME:OPTION=VALUE,…; repeatable; `all` runs every one; "
        "default: those of the run's experiment file, else the oracle ladder and label "
        "inference (see `lightsplit list attacks`)"
    ),
]
MovedTask = Annotated[
    str | None,
    typer.Option(
        "--task", help="where the task of the run is, if it has moved since the run"
    ),
]
MovedData = Annotated[
    Path | None,
    typer.Option(
        "--data", help="an owner's files, if they have moved since `join --record`"
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
    int | None,
    typer.Option(
        min=1,
        help="images, rows or texts to reconstruct; default: 64, or 256 if short, 1000 "
        "if full",
    ),
]
BudgetName = Annotated[
    str,
    typer.Option(
        help="quick: minutes, too short to rank codecs; short: an hour or two; full: "
        "no limit"
    ),
]
Auxiliary = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="images, rows or texts the attacker has; default: 2000, or 10000 if "
        "short, 30000 if full",
    ),
]
AuxiliaryFrom = Annotated[
    str,
    typer.Option(
        help="others: the other clients' images (with one client: shuffled test images"
        "; of an owner who joined: its samples that are not attacked); test: the first "
        "test images"
    ),
]
VictimIndex = Annotated[
    int, typer.Option(min=0, help="number of the client whose images are attacked")
]
During = Annotated[
    bool,
    typer.Option(
        "--during",
        help="train the run again with learning attacks at its server, and infer "
        "labels at each evaluation; other named attacks follow the training",
    ),
]


def _steps_or_never(text: str | int) -> int | None:
    """Return a number of steps, or None for the word that means no steps at all."""
    if text == NEVER:
        return None
    if not str(text).isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"expected 1 or more steps, or {NEVER}; got {text}")
    return int(text)


ScoreEvery = Annotated[
    int | None,
    typer.Option(
        parser=_steps_or_never,
        metavar="STEPS",
        help="--during: steps between lines of audit-NAME.jsonl, or 'never'",
    ),
]
SaveEvery = Annotated[
    int | None,
    typer.Option(
        parser=_steps_or_never,
        metavar="STEPS",
        help="--during: steps between saves, or 'never'",
    ),
]
GoOn = Annotated[
    bool, typer.Option("--resume", help="--during: continue an interrupted audit")
]
AttackSeed = Annotated[int, typer.Option(min=0, help="seed of the attacks")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 …")]
EntriesAsJson = Annotated[
    bool, typer.Option("--json", help="print the entries and nothing else")
]

"""Options that several commands have, each written down once."""

from pathlib import Path
from typing import Annotated

import typer

ExperimentFile = Annotated[
    Path | None, typer.Argument(help="experiment file (TOML); options override it")
]
RunOut = Annotated[
    Path | None, typer.Option(help="folder of the run; default: new under runs/")
]
Resume = Annotated[
    Path | None,
    typer.Option(help="go on with the run in this folder, with its own settings"),
]
CheckpointEvery = Annotated[
    int, typer.Option(min=0, help="steps between checkpoints; 0: each evaluation")
]
RecordAsJson = Annotated[
    bool, typer.Option("--json", help="print record.json and nothing else")
]
FiguresAsJson = Annotated[
    bool, typer.Option("--json", help="print the figures as JSON, nothing else")
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="where the datasets lie; default: LIGHTSPLIT_DATA or cache"),
]
TensorBoard = Annotated[
    bool, typer.Option("--tensorboard", help="log for TensorBoard too")
]

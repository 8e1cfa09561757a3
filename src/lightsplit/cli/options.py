"""Options that several commands share, each declared once."""

from pathlib import Path
from typing import Annotated

import typer

from lightsplit.experiments.mlflow_log import MLflowLog
from lightsplit.experiments.tensorboard import TensorBoardLog
from lightsplit.runs.callbacks import Callback

ExperimentFile = Annotated[
    Path | None, typer.Argument(help="experiment file (TOML); options override it")
]
RunOut = Annotated[
    Path | None, typer.Option(help="folder of the run; default: a new one under runs/")
]
Resume = Annotated[
    Path | None,
    typer.Option(help="resume the run in this folder with its own settings"),
]
CheckpointEvery = Annotated[
    int | None,
    typer.Option(min=1, help="steps between checkpoints; default: at each evaluation"),
]
ParticipationFile = Annotated[
    Path | None,
    typer.Option(
        "--participation",
        help="participation.jsonl of a run of rounds, to repeat it with those who were "
        "there; default: everybody in every round",
    ),
]
RoundWorkers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        help="processes that compute the owners of parallel rounds, one thread each; "
        "their number does not change the results; default: this process does it",
    ),
]
RecordAsJson = Annotated[
    bool, typer.Option("--json", help="print record.json and nothing else")
]
FiguresAsJson = Annotated[
    bool, typer.Option("--json", help="print the figures as JSON, nothing else")
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="folder of the datasets; default: LIGHTSPLIT_DATA or the cache"),
]
OwnData = Annotated[
    Path | None,
    typer.Option("--data", help="folder with your own files; nothing else is read"),
]
TensorBoard = Annotated[
    bool, typer.Option("--tensorboard", help="also log for TensorBoard")
]
ResumeCells = Annotated[
    bool, typer.Option("--resume", help="continue in a folder that already has cells")
]
WorkerCount = Annotated[
    int | None, typer.Option(min=1, help="number of processes; default: one per core")
]
Ray = Annotated[
    str | None, typer.Option(help="run on Ray: local, or the address of a cluster")
]
Cpus = Annotated[float, typer.Option(min=0, help="CPUs per cell on Ray")]
Gpus = Annotated[float, typer.Option(min=0, help="GPUs per cell on Ray")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="show the cells and their estimated cost")
]
MLflow = Annotated[
    str | None,
    typer.Option(
        "--mlflow",
        help="also log to this MLflow store: sqlite:///mlflow.db or http://host:5000",
    ),
]


def chosen_callbacks(*, tensorboard: bool, mlflow: str | None) -> list[Callback]:
    """Return the loggers that the user asked for; an extra may be missing."""
    boards: list[Callback] = [TensorBoardLog()] if tensorboard else []
    return [*boards, MLflowLog(mlflow)] if mlflow is not None else boards

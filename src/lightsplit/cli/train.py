"""``lightsplit train``: one run from start to end, or resumed where it stopped."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from lightsplit.cli import console
from lightsplit.cli.findings import findings
from lightsplit.cli.options import (
    CheckpointEvery,
    DataDir,
    ExperimentFile,
    MLflow,
    ParticipationFile,
    RecordAsJson,
    Resume,
    RoundWorkers,
    RunOut,
    TensorBoard,
    chosen_callbacks,
)
from lightsplit.cli.progress import TrainingBar
from lightsplit.cli.runs import opened_run
from lightsplit.cli.settings import Settings, takes_experiment
from lightsplit.experiments import Experiment, run
from lightsplit.experiments.labels import method
from lightsplit.results import RunFolder, hand_offs
from lightsplit.results.promises import certificate_text
from lightsplit.runs.callbacks import Callback


@takes_experiment
def train(  # noqa: PLR0913
    *,
    settings: Settings,
    file: ExperimentFile = None,
    out: RunOut = None,
    resume: Resume = None,
    data_dir: DataDir = None,
    checkpoint_every: CheckpointEvery = None,
    participation: ParticipationFile = None,
    workers: RoundWorkers = None,
    tensorboard: TensorBoard = False,
    mlflow: MLflow = None,
    json: RecordAsJson = False,
) -> None:
    """Train one network between data owners and a server, in this process.

    Every message is the one that would cross the wire, and every byte is counted. Exit
    codes: 0 done, 1 error, 3 ended by a detector (--on-flag stop), 130 interrupted.

    [bold]Examples[/]

      lightsplit train                                      the embedded digits, seconds

      lightsplit train --codec raw --clients 10 --alpha 0.1

      lightsplit train --dataset fashion-mnist --ratio 32 --projection dct --wcc 0.01

      lightsplit train --clients 1000 --rounds parallel --owners-per-round 50
      --dataset fashion-mnist --workers 4

      lightsplit train --clients 10 --trigger badnets --detector cosine-code

      lightsplit train --resume runs/digits-tinycnn-l2-lightsplit-f-8x
    """
    with (
        console.reported_errors(),
        opened_run(file, settings, out=out, resume=resume) as (experiment, folder),
    ):
        record = train_in(
            experiment,
            folder,
            data_dir=data_dir,
            checkpoint_every=checkpoint_every or 0,
            is_quiet=json,
            callbacks=chosen_callbacks(tensorboard=tensorboard, mlflow=mlflow),
            participation=participation,
            workers=workers,
        )
    if json:
        console.print_json(record)
    else:
        console.out.print(summary(record))
        if dominated := hand_offs.note(record["bytes"]):
            console.out.print(dominated, soft_wrap=True)
        console.out.print(f"run folder: {folder.path}", soft_wrap=True)
    if record["stopped_by"] == "detector":
        raise SystemExit(console.FLAGGED_EXIT)


def train_in(  # noqa: PLR0913
    experiment: Experiment,
    folder: RunFolder,
    *,
    data_dir: Path | None = None,
    checkpoint_every: int = 0,
    is_quiet: bool = False,
    callbacks: Sequence[Callback] = (),
    participation: Path | None = None,
    workers: int | None = None,
) -> dict[str, Any]:
    """Run with a progress bar; exit with code 130 if the user interrupts it."""
    title = f"{experiment.make_task().name} {method(experiment)}"
    with TrainingBar(title, is_quiet=is_quiet).shown() as bar:
        record = run(
            experiment,
            folder,
            data_dir=data_dir,
            checkpoint_every=checkpoint_every,
            observe=bar.observe,
            started=bar.start,
            callbacks=callbacks,
            participation=participation,
            workers=workers,
        )
    if record is None:
        console.err.print(
            f"interrupted; resume with: lightsplit train --resume {folder.path}",
            soft_wrap=True,
        )
        raise SystemExit(console.INTERRUPTED_EXIT)
    return record


def _ratios(record: dict[str, Any]) -> dict[str, str]:
    if not record["code_bits"]:
        return {"sent in a step": "nothing: the clients train without the server"}
    return {
        "ratio at the cut": f"{record['ratio']:.4g}x "
        f"({record['activation_size']:,} → {record['code_size']:,} values)",
        "ratio of the whole step": f"{record['step_ratio']:.4g}x",
        "ratio in all": f"{record['total_ratio']:.4g}x",
        "bits of one code": f"{record['code_bits']:,}",
        "certificate": certificate_text(record["certificate"]),
    }


def summary(record: dict[str, Any]) -> Table:
    """Return the figures of a run that people look at first."""
    counts, monitor = record["bytes"], record["monitor"]
    rows = {
        "test figures": ", ".join(
            console.figure_text(key.removeprefix("test_"), value)
            for key, value in record.items()
            if key.startswith("test_")
        ),
        "best": console.figure_text(monitor["name"], monitor["best"]),
        **_ratios(record),
        **{
            name.replace("_", " "): console.bytes_text(count)
            for name, count in counts.items()
            if count
        },
        "steps": f"{record['steps']:,} in {record['seconds']:.1f} s",
        **findings(record),
    }
    table = Table(show_header=False, title="figures", title_justify="left")
    for name, value in rows.items():
        table.add_row(name, value)
    return table

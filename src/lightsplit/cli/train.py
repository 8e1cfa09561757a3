"""``lightsplit train``: one run from beginning to end, or on from where it stopped."""

from pathlib import Path
from typing import Any

from rich.table import Table

from lightsplit.cli import console
from lightsplit.cli.findings import findings
from lightsplit.cli.options import (
    CheckpointEvery,
    DataDir,
    ExperimentFile,
    RecordAsJson,
    Resume,
    RunOut,
    TensorBoard,
)
from lightsplit.cli.progress import TrainingBar
from lightsplit.cli.runs import opened_run
from lightsplit.cli.settings import Settings, takes_experiment
from lightsplit.experiments import Experiment, run
from lightsplit.experiments.tensorboard import TensorBoardLog
from lightsplit.results import RunFolder


@takes_experiment
def train(  # noqa: PLR0913
    *,
    settings: Settings,
    file: ExperimentFile = None,
    out: RunOut = None,
    resume: Resume = None,
    data_dir: DataDir = None,
    checkpoint_every: CheckpointEvery = 0,
    tensorboard: TensorBoard = False,
    json: RecordAsJson = False,
) -> None:
    """Train one network between data owners and a server, in this process.

    Every message is the one that would cross the wire, and every byte is counted. Exit
    codes: 0 done, 1 error, 3 ended by a detector (--on-flag stop), 130 interrupted.

    [bold]Examples[/]

      lightsplit train                                      the embedded digits, seconds

      lightsplit train --codec raw --clients 10 --alpha 0.1

      lightsplit train --dataset fashion-mnist --ratio 32 --projection dct --wcc 0.01

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
            checkpoint_every=checkpoint_every,
            is_quiet=json,
            has_tensorboard=tensorboard,
        )
    if json:
        console.print_json(record)
    else:
        console.out.print(summary(record))
        console.out.print(f"run folder: {folder.path}", soft_wrap=True)
    if record["stopped_by"] == "detector":
        raise SystemExit(console.FLAGGED_EXIT)


def train_in(
    experiment: Experiment,
    folder: RunFolder,
    *,
    data_dir: Path | None = None,
    checkpoint_every: int = 0,
    is_quiet: bool = False,
    has_tensorboard: bool = False,
) -> dict[str, Any]:
    """Run behind a progress bar; leave with exit code 130 when interrupted."""
    title = f"{experiment.dataset} {experiment.codec} {experiment.ratio:g}x"
    with (
        TensorBoardLog(folder.path, is_on=has_tensorboard) as log,
        TrainingBar(title, is_quiet=is_quiet).shown() as bar,
    ):
        record = run(
            experiment,
            folder,
            data_dir=data_dir,
            checkpoint_every=checkpoint_every,
            observe=lambda job, done: log.observe(job, done) and bar.observe(job, done),
            started=bar.start,
        )
    if record is None:
        console.err.print(
            f"interrupted; continue with: lightsplit train --resume {folder.path}",
            soft_wrap=True,
        )
        raise SystemExit(console.INTERRUPTED_EXIT)
    return record


def summary(record: dict[str, Any]) -> Table:
    """Return the figures of a run that people look at first."""
    counts = record["bytes"]
    rows = {
        "test accuracy": f"{record['test_accuracy']:.2%} "
        f"(best {record['best_test_accuracy']:.2%})",
        "ratio at the cut": f"{record['ratio']:.4g}x "
        f"({record['activation_size']:,} → {record['code_size']:,} values)",
        "ratio of the whole step": f"{record['step_ratio']:.4g}x",
        "bits of one code": f"{record['code_bits']:,}",
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

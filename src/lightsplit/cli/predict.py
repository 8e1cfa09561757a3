"""``lightsplit predict``: classify with a model whose backbone is on a server."""

import csv
import io
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress
from torch import Tensor

from lightsplit.cli import console
from lightsplit.cli.link import (
    DEFAULT_ADDRESS,
    Address,
    Certificates,
    ClientName,
    Insecure,
    KeyFile,
    SecretFile,
    make_endpoint,
)
from lightsplit.cli.options import DataDir, ExperimentFile, FiguresAsJson, OwnData
from lightsplit.cli.settings import Settings, resolve, takes_experiment
from lightsplit.data.forms.pictures import write_mask
from lightsplit.experiments.prediction import Predictions, predict_experiment
from lightsplit.results import atomic
from lightsplit.runs import EVALUATION_BATCH
from lightsplit.runtime import Secret
from lightsplit.transports.credentials import TlsFiles
from lightsplit.transports.homomorphic import Cost
from lightsplit.transports.sealing import SealingKey


@takes_experiment
def predict(  # noqa: PLR0913
    *,
    settings: Settings,
    file: ExperimentFile = None,
    name: ClientName = "client",
    address: Address = DEFAULT_ADDRESS,
    certs: Certificates = None,
    insecure: Insecure = False,
    key: KeyFile = None,
    secret: SecretFile = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="private heads, release once: folder of this client's side from 'join'"
        ),
    ] = None,
    data: OwnData = None,
    data_dir: DataDir = None,
    batch: Annotated[
        int, typer.Option(min=1, max=EVALUATION_BATCH, help="samples sent at a time")
    ] = EVALUATION_BATCH,
    out: Annotated[
        Path | None,
        typer.Option(
            help="write a line for each sample to this CSV; where samples have masks, "
            "a picture for each to this folder"
        ),
    ] = None,
    json: FiguresAsJson = False,
) -> None:
    """Predict over the wire, on your own files or on a test set.

    This works while a run is being served. With --data, the function ``new_data``
    of the task reads your folder, or else the test set of its ``data`` is taken. Labels
    stay here: the client computes the figures itself.

    [bold]Examples[/]

      lightsplit predict --task my_task.py --data ./new --out predictions.csv
      --clients 3 --name alice --address host:7443 --certs pki/alice
      --state runs/client-alice
    """
    is_hidden = json or not console.err.is_terminal
    bar = Progress(console=console.err, transient=True, disable=is_hidden)
    with console.reported_errors(), bar:
        samples = bar.add_task("predicting", total=None)
        tls = TlsFiles.of_client(certs, name) if certs else None
        found = predict_experiment(
            resolve(file, settings),
            make_endpoint(address, tls, insecure=insecure),
            name=name,
            key=SealingKey.load(key) if key else None,
            secret=Secret.load(secret) if secret else None,
            folder=state,
            data_dir=data_dir,
            own_data=data,
            batch=batch,
            watch=lambda done, total: bar.update(samples, completed=done, total=total),
        )
        if out is not None:
            _write(out, found)
    count = len(found.predictions)
    if json:
        cost = {} if found.cost is None else {"encrypted": asdict(found.cost)}
        console.print_json({"samples": count, **found.figures, **cost})
        return
    texts = [console.figure_text(*one) for one in found.figures.items()]
    console.out.print(f"{count} samples: {', '.join(texts) or 'predicted'}")
    if found.cost is not None:
        console.out.print(cost_text(found.cost), soft_wrap=True)
    if out is not None:
        console.out.print(f"predictions: {out}", soft_wrap=True)


def cost_text(cost: Cost) -> str:
    """Return what encryption took, beside the same messages in the clear."""
    sent, received = map(console.bytes_text, (cost.sent_bytes, cost.received_bytes))
    plain = (cost.plain_sent_bytes, cost.plain_received_bytes)
    would_send, would_receive = map(console.bytes_text, plain)
    return (
        f"encrypted: {sent} sent and {received} received in {cost.seconds:.2f} s; in "
        f"the clear {would_send} and {would_receive} in {cost.plain_seconds:.4f} s"
    )


def _write(out: Path, found: Predictions) -> None:
    """Write masks as pictures into a folder, all else as one CSV."""
    if not all(isinstance(one, Tensor) for one in found.predictions):
        atomic.write_text(out, _csv(found))
        return
    out.mkdir(parents=True, exist_ok=True)
    for name, mask in zip(found.samples, found.predictions, strict=True):
        write_mask(out / (name if name.endswith(".png") else f"{name}.png"), mask)


def _csv(found: Predictions) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    columns: dict[str, list[Any]] = {
        "sample": found.samples,
        "prediction": found.predictions,
    }
    if found.labels:
        columns["label"] = found.labels
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()

"""``lightsplit predict``: classify with a model whose backbone is elsewhere."""

import csv
import io
from pathlib import Path
from typing import Annotated

import typer

from lightsplit.cli import console
from lightsplit.cli.link import (
    DEFAULT_ADDRESS,
    Address,
    Certificates,
    ClientName,
    Insecure,
    KeyFile,
)
from lightsplit.cli.options import DataDir, ExperimentFile, FiguresAsJson
from lightsplit.cli.settings import Settings, resolve, takes_experiment
from lightsplit.experiments.deploy import predict_experiment
from lightsplit.results import atomic
from lightsplit.training.network import Endpoint
from lightsplit.transports.credentials import TlsFiles
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
    state: Annotated[
        Path | None,
        typer.Option(help="private heads: folder of this client's side from 'join'"),
    ] = None,
    data_dir: DataDir = None,
    out: Annotated[
        Path | None, typer.Option(help="write one line per test sample to this CSV")
    ] = None,
    json: FiguresAsJson = False,
) -> None:
    """Classify the test set over the wire; the server stays in evaluation mode.

    Works while a run is being served. Labels stay here: the accuracy is computed by
    this client.
    """
    with console.reported_errors():
        tls = TlsFiles.of_client(certs, name) if certs else None
        predictions, labels = predict_experiment(
            resolve(file, settings),
            Endpoint(address, tls, insecure),
            name=name,
            key=SealingKey.load(key) if key else None,
            folder=state,
            data_dir=data_dir,
        )
        if out is not None:
            atomic.write_text(out, _csv(predictions, labels))
    accuracy = sum(p == t for p, t in zip(predictions, labels, strict=True))
    figures = {"samples": len(labels), "accuracy": accuracy / len(labels)}
    if json:
        console.print_json(figures)
    else:
        console.out.print(f"{figures['accuracy']:.2%} of {len(labels)} samples right")


def _csv(predictions: list[int], labels: list[int]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["sample", "prediction", "label"])
    writer.writerows(
        (number, *pair)
        for number, pair in enumerate(zip(predictions, labels, strict=True))
    )
    return text.getvalue()

"""``lightsplit export``: a trained model for other tools."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from lightsplit.cli import console
from lightsplit.experiments.export import export_client, export_whole, restore
from lightsplit.results import RunFolder


def export(
    run: Annotated[
        Path, typer.Argument(help="folder of a run, or an owner's from 'join'")
    ],
    *,
    part: Annotated[
        Literal["client", "whole"],
        typer.Option(help="client: head and encoder as ONNX; whole: torch.export"),
    ] = "whole",
    client: Annotated[int, typer.Option(min=0, help="whose head, if private")] = 0,
    owner: Annotated[
        Path | None,
        typer.Option(help="networked runs: folder of an owner, which joins RUN's part"),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="the task's file, if it has moved")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="default: RUN/export")
    ] = None,
) -> None:
    """Write a trained model in a form that other tools read.

    The client's part (inputs to code) becomes client.onnx, which onnxruntime runs; it
    is run once here and compared with PyTorch. The whole model, as it predicts with its
    codec, becomes model.pt2 for torch.export.load. Weights are written beside them as
    safetensors. No data is needed. Of a networked run, each side has its own part: the
    whole model needs the server's folder and that of an owner.

    [bold]Examples[/]

      lightsplit export runs/NAME --part client

      lightsplit export runs/NAME --part whole -o exported

      lightsplit export runs/SERVED --owner runs/client-alice --part whole
    """
    target = out or run / "export"
    with console.reported_errors():
        trained = restore(RunFolder.open(run), client=client, owner=owner, task=task)
        if part == "client":
            difference = export_client(trained, target)
            note = f"codes equal PyTorch's to {difference:.1e}"
        else:
            export_whole(trained, target)
            note = "load it with torch.export.load"
    name = "client.onnx" if part == "client" else "model.pt2"
    console.out.print(f"{target / name} ({note})", soft_wrap=True, highlight=False)

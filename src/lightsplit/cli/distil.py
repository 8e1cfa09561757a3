"""``lightsplit distil``: a codec that is trained before the run that uses it."""

from pathlib import Path
from typing import Annotated

import typer

from lightsplit.cli import console
from lightsplit.cli.options import DataDir
from lightsplit.experiments.distillation import Recipe, distil
from lightsplit.results import RunFolder, tensors


def distil_codec(  # noqa: PLR0913
    run: Annotated[
        Path, typer.Argument(help="folder of a finished run on public data, codec raw")
    ],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="file of the codec (.safetensors)")
    ],
    channels: Annotated[int, typer.Option(min=1, help="of the code")] = 8,
    hidden: Annotated[
        int, typer.Option(min=1, help="channels between the convolutions")
    ] = 48,
    rate_weight: Annotated[
        float, typer.Option(min=0, help="what a bit costs, in squared error")
    ] = 0.128,
    epochs: Annotated[int, typer.Option(min=1, help="passes over the data")] = 5,
    data_dir: DataDir = None,
) -> None:
    """Train codec franken to repeat a trained head, on the data of that head's run.

    Both ends of a later run name the file as trained=FILE. It holds encoder, lift and
    the frequencies of the code, and tells whoever reads it as much about the data as
    trained weights do: distil on public data.

    [bold]Examples[/]

      lightsplit train --dataset fashion-mnist --codec raw --out public

      lightsplit distil public --out franken.safetensors

      lightsplit train --dataset fashion-mnist --weights public/model.safetensors
      --codec franken:trained=franken.safetensors --gradients none
    """
    recipe = Recipe(channels, hidden, rate_weight, epochs)
    with console.reported_errors():
        made = distil(
            RunFolder.open(run), recipe, data_dir=data_dir, on_epoch=_say_epoch
        )
        tensors.save(out, made.codec.tensors())
    console.out.print(
        f"{out}: {made.sample_bytes:.1f} bytes a sample on the wire, squared error "
        f"{made.error:.2%} of the activations' squares, on test samples",
        soft_wrap=True,
        highlight=False,
    )


def _say_epoch(epoch: int, error: float, bits: float) -> None:
    console.warn(f"epoch {epoch + 1}: squared error {error:.4g}, {bits:.1f} bits")

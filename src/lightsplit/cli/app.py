"""The command line; this module only maps command names to functions."""

from importlib.metadata import version
from typing import Annotated

import typer

from lightsplit.cli import certs_group
from lightsplit.cli.advise import advise
from lightsplit.cli.audit import audit_run
from lightsplit.cli.compare import compare
from lightsplit.cli.cost import cost
from lightsplit.cli.demo import demo
from lightsplit.cli.distil import distil_codec
from lightsplit.cli.export import export
from lightsplit.cli.join import join
from lightsplit.cli.keys import keys
from lightsplit.cli.listing import list_parts
from lightsplit.cli.new import new
from lightsplit.cli.predict import predict
from lightsplit.cli.report import report
from lightsplit.cli.serve import serve
from lightsplit.cli.sweep import sweep
from lightsplit.cli.train import train
from lightsplit.cli.verify import verify

app = typer.Typer(
    name="lightsplit",
    help="Split learning between many data owners and one server: "
    "small messages, labels that stay at home, measured leakage.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=True,
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"lightsplit {version('lightsplit')}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="show the version and exit",
        ),
    ] = False,
) -> None:
    """Handle the options that come before a command."""


app.command("new")(new)
app.command("train")(train)
app.command("audit")(audit_run)
app.command("sweep")(sweep)
app.command("advise")(advise)
app.command("report")(report)
app.command("compare")(compare)
app.command("cost")(cost)
app.command("verify")(verify)
app.command("list")(list_parts)
app.command("demo")(demo)
app.command("serve")(serve)
app.command("join")(join)
app.command("predict")(predict)
app.add_typer(certs_group.app, name="certs")
app.command("export")(export)
app.command("distil")(distil_codec)
app.command("keys")(keys)


def main() -> None:
    """Run the command line."""
    app()

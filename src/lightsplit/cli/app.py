"""The command line; this file only wires names to functions."""

import typer

from lightsplit.cli.audit import audit_run
from lightsplit.cli.certs import certs
from lightsplit.cli.compare import compare
from lightsplit.cli.cost import cost
from lightsplit.cli.demo import demo
from lightsplit.cli.join import join
from lightsplit.cli.keys import keys
from lightsplit.cli.listing import list_parts
from lightsplit.cli.predict import predict
from lightsplit.cli.report import report
from lightsplit.cli.serve import serve
from lightsplit.cli.sweep import sweep
from lightsplit.cli.train import train
from lightsplit.cli.verify import verify

app = typer.Typer(
    name="lightsplit",
    help="Split learning between many data owners and one server: "
    "small messages, labels at home, leakage measured.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("train")(train)
app.command("audit")(audit_run)
app.command("sweep")(sweep)
app.command("report")(report)
app.command("compare")(compare)
app.command("cost")(cost)
app.command("verify")(verify)
app.command("list")(list_parts)
app.command("demo")(demo)
app.command("serve")(serve)
app.command("join")(join)
app.command("predict")(predict)
app.command("certs")(certs)
app.command("keys")(keys)


def main() -> None:
    """Run the command line."""
    app()

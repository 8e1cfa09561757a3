"""``lightsplit certs`` and its commands."""

from typing import Any

import typer
from typer.core import TyperGroup

from lightsplit.cli import certs, certs_at_owners


class MakesByDefault(TyperGroup):
    """``certs FOLDER`` is ``certs make FOLDER``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Add the name of the command where none is given."""
        if args and args[0] not in (*self.commands, *self.get_help_option_names(ctx)):
            args = ["make", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=MakesByDefault,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Make, request, sign, renew and revoke the certificates of server and "
    "clients. 'certs FOLDER' is short for 'certs make FOLDER'.",
)
app.command("make")(certs.make)
app.command("request")(certs_at_owners.request)
app.command("sign")(certs_at_owners.sign)
app.command("renew")(certs_at_owners.renew)
app.command("revoke")(certs_at_owners.revoke)

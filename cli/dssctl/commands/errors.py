"""``dssctl errors``: the registry of conditions, readable without a daemon."""

from typing import Annotated

import typer

from dss_core.errors import REGISTRY, DssError, IllegalArgument
from dssctl.output import Column, Item, Kind, show_list, show_one
from dssctl.tree import Command, noun, settings_of

app = noun("errors")

ERROR_KIND = Kind(
    name="ErrorCode",
    columns=(
        Column("code", "CODE"),
        Column("name", "NAME"),
        Column("exit_code", "EXIT", right=True),
        Column("sentence", "SENTENCE"),
        Column("hint", "HINT", wide=True),
        Column("definite", "DEFINITE", wide=True),
    ),
    identity=lambda item: str(item["code"]),
)


@app.command("ls", cls=Command)
def list_codes(context: typer.Context) -> None:
    """List every error code."""
    items = [_item(REGISTRY[code]) for code in sorted(REGISTRY)]
    show_list(settings_of(context), ERROR_KIND, items)


@app.command(cls=Command)
def explain(
    context: typer.Context,
    code: Annotated[str, typer.Argument(metavar="CODE", help="As printed, DSS2001 for one.")],
) -> None:
    """Say what an error code means and what to do about it."""
    leaf = REGISTRY.get(code.upper())
    if leaf is None:
        raise IllegalArgument(argument=f"the code {code}", rule="see: dssctl errors ls")
    show_one(settings_of(context), ERROR_KIND, _item(leaf))


def _item(leaf: type[DssError]) -> Item:
    return {
        "code": leaf.code,
        "name": leaf.__name__,
        "exit_code": int(leaf.exit_code),
        "sentence": leaf.sentence,
        "hint": leaf.hint,
        "definite": leaf.definite,
    }

"""``dssctl explain``: what the fields of items mean."""

from typing import Annotated

import typer

from dss_core.errors import REGISTRY, NothingToExplain
from dssctl.explaining import FIELD_KIND, field_items
from dssctl.fields import KINDS
from dssctl.listing import list_known, listing
from dssctl.near_names import near_names
from dssctl.output import Item
from dssctl.tree import verb_alone

app = verb_alone("explain")


@app.command(cls=listing(FIELD_KIND))
def explain(
    context: typer.Context,
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[TYPE[.FIELD]]",
            help="group, group.lag, or lag wherever there is one; all where absent.",
        ),
    ] = None,
) -> None:
    """Say what the fields of items mean: those that -o json, --filter and --sort name."""
    from dssctl.command_tree import command_kinds  # it imports every command

    items = list(field_items(list(command_kinds())))
    if what is None:
        list_known(context, items)
        return
    kind, _, field = what.partition(".")
    of_kind = [item for item in items if _named(str(item["kind"]), kind)]
    found = (
        [item for item in of_kind if not field or item["field"] == field]
        if of_kind
        else [item for item in items if item["field"] == what]
    )
    if not found:
        raise NothingToExplain(what=what, near=_near(what, items))
    list_known(context, found)


def _named(kind: str, word: str) -> bool:
    """Whether the word names the kind: in small letters, also in the plural."""
    spelt = word.lower().replace("-", "").replace("_", "")
    return kind.lower() in {spelt, spelt.removesuffix("s")}


def _near(what: str, items: list[Item]) -> str:
    if what.upper().removeprefix("DSS") in {code.removeprefix("DSS") for code in REGISTRY}:
        return f"It is the code of an error: dssctl errors explain {what}. "
    kinds = {kind.lower() for kind in KINDS}
    fields = {f"{str(item['kind']).lower()}.{item['field']}" for item in items}
    known = fields if "." in what else kinds | {str(item["field"]) for item in items}
    near = " or ".join(near_names(what, known))
    return f"Did you mean {near}? " if near else ""

"""``dssctl errors``: the registry of conditions, readable without a daemon."""

from string import Formatter
from typing import Annotated

import typer

from dss_core.errors import REGISTRY, DssError, NoSuchErrorCode
from dssctl.listing import list_known, listing
from dssctl.output import Column, Item, Kind, show_one
from dssctl.tree import noun, settings_of, showing

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


EXPLANATION_KIND = Kind(
    name=ERROR_KIND.name,
    columns=(
        *(column for column in ERROR_KIND.columns if column.field != "definite"),
        Column("fields", "FIELDS"),
        Column("definite", "DEFINITE", cell=lambda item, _now_us: _certainty(item)),
        Column("explanation", "EXPLANATION"),
    ),
    identity=ERROR_KIND.identity,
)


def _certainty(item: Item) -> str:
    if item["definite"]:
        return "yes: nothing was done, for certain"
    return "no: it may have been done"


@app.command("ls", cls=listing(ERROR_KIND))
def list_codes(context: typer.Context) -> None:
    """List every error code."""
    list_known(context, [_item(REGISTRY[code]) for code in sorted(REGISTRY)])


@app.command(cls=showing(EXPLANATION_KIND))
def explain(
    context: typer.Context,
    code: Annotated[str, typer.Argument(metavar="CODE", help="DSS2001, 2001 or TopicNotFound.")],
) -> None:
    """Say what an error code means and what to do about it."""
    leaf = _found(code)
    if leaf is None:
        raise NoSuchErrorCode(code=code)
    from dssctl.explanations import explanation_of

    item = {**_item(leaf), "explanation": explanation_of(leaf.code)}
    show_one(settings_of(context), EXPLANATION_KIND, item)


def _found(code: str) -> type[DssError] | None:
    """The condition of a code, with or without its letters, or of a class's name."""
    wanted = code.upper()
    for leaf in REGISTRY.values():
        if wanted in {leaf.code, leaf.code.removeprefix("DSS"), leaf.__name__.upper()}:
            return leaf
    return None


def _item(leaf: type[DssError]) -> Item:
    return {
        "code": leaf.code,
        "name": leaf.__name__,
        "exit_code": int(leaf.exit_code),
        "sentence": leaf.sentence,
        "hint": leaf.hint,
        "fields": _fields(leaf),
        "definite": leaf.definite,
    }


def _fields(leaf: type[DssError]) -> list[str]:
    """The fields of the condition."""
    return [name for _, name, _, _ in Formatter().parse(leaf.sentence) if name]

"""What every ``rm`` shows, and what it accepts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from dss_core.errors import DssError
from dssctl.output import Column, Item, Kind, show_one
from dssctl.settings import Settings
from dssctl.tree import settings_of

if TYPE_CHECKING:
    from dss_client import Operation

REMOVAL_KIND = Kind(
    name="Removal",
    columns=(
        Column("name", "NAME"),
        Column("removed", "REMOVED"),
        Column("operation", "OPERATION"),
    ),
    identity=lambda item: str(item["name"]),
)


def showing_removal(name: str) -> "Callable[[Settings, Operation], None]":
    """Tells whether the thing of that name is gone."""

    def show(settings: Settings, operation: "Operation") -> None:
        removed = operation.state == "done"
        item: Item = {"name": name, "removed": removed, "operation": operation.number}
        show_one(settings, REMOVAL_KIND, item)

    return show


@contextmanager
def accepting(
    context: typer.Context, absent: type[DssError], name: str, *, if_exists: bool
) -> Iterator[None]:
    """With ``if_exists``, a thing that is not there is no error."""
    try:
        yield
    except absent:
        if not if_exists:
            raise
        show_removal(settings_of(context), name, removed=False)


def show_removal(settings: Settings, name: str, *, removed: bool) -> None:
    """Report whether the thing of that name was there, for a removal without an operation."""
    item: Item = {"name": name, "removed": removed, "operation": None}
    show_one(settings, REMOVAL_KIND, item)

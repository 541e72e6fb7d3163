"""``dssctl version``, in the formats that the fast path does not know."""

import typer

from dssctl import VERSION
from dssctl.output import Column, Kind, show_one
from dssctl.tree import settings_of, showing, verb_alone

app = verb_alone("version")

VERSION_KIND = Kind(
    name="Version",
    columns=(Column("name", "NAME"), Column("version", "VERSION")),
    identity=lambda item: str(item["version"]),
)


@app.command(cls=showing(VERSION_KIND))
def version(context: typer.Context) -> None:
    """Print the version of this program. The daemon's is in: dssctl daemon status."""
    show_one(settings_of(context), VERSION_KIND, {"name": "dssctl", "version": VERSION})

"""What every ``rm`` shows."""

from dssctl.output import Column, Kind, show_one
from dssctl.settings import Settings

_REMOVAL = Kind(
    name="Removal",
    columns=(Column("name", "NAME"), Column("removed", "REMOVED")),
    identity=lambda item: str(item["name"]),
)


def show_removal(settings: Settings, name: str, *, removed: bool) -> None:
    """Tell whether a thing of that name was there and is gone."""
    show_one(settings, _REMOVAL, {"name": name, "removed": removed})

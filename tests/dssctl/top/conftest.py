"""Views of a made-up daemon, and a dashboard that plays it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from dssctl.top.model.picture import Picture
from dssctl.top.model.places import Place
from dssctl.top.paint.frame import Badge
from dssctl.top.stage.moves import gone_to
from dssctl.top.stage.view import Size, View, looked
from support.dashboard_items import after, busy

BADGE = Badge("unix:/run/dssd.sock")

Viewed = Callable[..., View]


@pytest.fixture(scope="session")
def picture() -> Picture:
    """A daemon in the middle of the day."""
    return after(busy())


@pytest.fixture
def viewed(picture: Picture) -> Viewed:
    """A view of it: of a place, in a size."""

    def view(
        place: Place | None = None, size: tuple[int, int] = (80, 24), **fields: object
    ) -> View:
        first = View(BADGE, size=Size(size), picture=picture)
        shown = looked(replace(first, **fields))  # type: ignore[arg-type]
        return shown if place is None else gone_to(shown, place)

    return view

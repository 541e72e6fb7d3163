"""Running the dashboard to its exit code.

Invariant: the terminal is left as it was found, and only then is anything printed: the command
lines that were asked for or applied, so that they can be used again.
"""

import gc
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_core.errors import WrongUsage
from dssctl.confirm import protected
from dssctl.output import note
from dssctl.settings import Colour, Settings
from dssctl.top.model.picture import Picture
from dssctl.top.model.places import Place, Way
from dssctl.top.paint.frame import Badge
from dssctl.top.paint.glyphs import glyphs
from dssctl.top.stage.places_named import place_named
from dssctl.top.stage.view import View
from dssctl.top.terminal.curtain import curtain

if TYPE_CHECKING:
    from dssctl.top.feed.recording import Recorder
    from dssctl.top.feed.replay import Replayed
    from dssctl.top.terminal.app import Dashboard

GARBAGE_YOUNG = 10_000
GARBAGE_MIDDLE = 50
GARBAGE_OLD = 100
"""When the cycle collector runs: after so many new objects, and for its older generations so many
times less often. If 2,000 groups change ten times a second, 80,000 objects come and go without a
cycle; with Python's own figures the collector looked at all of them every second, for 70 ms."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command."""

    screen: str = ""
    private: bool = False
    ascii_only: bool = False
    theme: str = "dark"
    record: str | None = None
    replay: str | None = None


def show(settings: Settings, options: Options) -> int:
    """Run the dashboard until it is left; returns its exit code.

    Raises:
        WrongUsage: there is no such screen.
        InputUnreadable, DocumentUnreadable: there is no such recording.
        OutputUnwritable: the recording cannot be made.
        Exception: a mistake of the dashboard, which ended it.
    """
    _quiet(settings)
    dashboard: Dashboard
    view = first_view(settings, options)
    replay = _replay(options, lambda: dashboard.begin_anew())
    recorder = _recorder(options)
    try:
        with curtain(view, options.theme):
            # Loaded after the first picture, so that a person sees it sooner.
            from dssctl.top.feed.live import Live
            from dssctl.top.terminal import app

            source = replay or Live(settings, private=options.private)
            dashboard = app.Dashboard(
                view, source, theme=options.theme, recorder=recorder, replay=replay
            )
            spare_collector()
            dashboard.run()
    finally:
        if recorder is not None:
            recorder.close()
    for line in dashboard.lines_noted:
        sys.stdout.write(f"{line}\n")
    if dashboard.failure is not None:
        raise dashboard.failure
    if recorder is not None:
        note(settings, recorder.failure or f"see it again: dssctl top --replay {options.record}")
    return dashboard.return_code or 0


def spare_collector() -> None:
    """Make the cycle collector run less often: the objects that come and go here have no cycles."""
    gc.freeze()  # what is loaded stays
    gc.set_threshold(GARBAGE_YOUNG, GARBAGE_MIDDLE, GARBAGE_OLD)


def _replay(options: Options, begin_anew: Callable[[], None]) -> "Replayed | None":
    if options.replay is None:
        return None
    from dssctl.top.feed.replay import Replayed

    return Replayed(options.replay, begin_anew)


def _recorder(options: Options) -> "Recorder | None":
    if options.record is None:
        return None
    from dssctl.top.feed.recording import Recorder

    return Recorder(options.record)


def first_view(settings: Settings, options: Options) -> View:
    """The first view.

    Raises:
        WrongUsage: there is no such screen.
    """
    way = Way.starting(Place("pulse"))
    if options.screen:
        place = _place(options.screen)
        way = Way.starting(place) if place.noun == "pulse" else way.into(place)
    badge = Badge(
        _endpoint(settings) if options.replay is None else options.replay,
        read_only=options.replay is not None or _is_read_only(settings),
        context="" if settings.context is None else settings.context.name,
        protected=protected(settings),
        recording=options.record is not None,
        replayed="" if options.replay is None else "...",
    )
    return View(badge, glyphs=glyphs(ascii_only=options.ascii_only), way=way)


def _is_read_only(settings: Settings) -> bool:
    """Whether this invocation, or its context, refuses changes."""
    return settings.read_only or bool(settings.context is not None and settings.context.read_only)


def _place(written: str) -> Place:
    """The place of a screen's name; a group's name is not looked up yet, but taken as its full
    name.

    Raises:
        WrongUsage: there is none.
    """
    noun, _, name = written.partition(" ")
    if noun in {"group", "groups"} and name:
        return Place("group", group=name)
    place = place_named(written, Picture())
    if isinstance(place, str):
        raise WrongUsage(reason=f"{place}.", command="dssctl top")
    return place


def _endpoint(settings: Settings) -> str:
    from dss_client import connect

    return connect(endpoint=settings.endpoint).endpoint


def _quiet(settings: Settings) -> None:
    """Set environment variables that keep libraries from writing to the terminal."""
    # gRPC writes to the terminal behind everybody's back.
    os.environ["GRPC_VERBOSITY"] = "NONE"
    if settings.colour is Colour.NEVER:
        os.environ["NO_COLOR"] = "1"
    elif settings.colour is Colour.ALWAYS or not os.environ.get("NO_COLOR"):
        # Textual takes an empty variable for a set one.
        os.environ.pop("NO_COLOR", None)

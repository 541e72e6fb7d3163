"""The ``--watch`` of every ``describe``: it looks again and again.

Invariant: each look runs the command itself, so a watched page shows what a single one shows.
"""

import io
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

from dss_core.errors import Stopping, TimedOut, Unreachable
from dssctl.listing import watch_option, with_bare_watch
from dssctl.output import Kind, note
from dssctl.screen import Drawn, Screen
from dssctl.settings import Format, Settings
from dssctl.tree import Command, settings_of

_AWAY = (Unreachable, TimedOut, Stopping)


class Page(Command):
    """A verb that describes one thing."""

    def __init__(self, name: str | None, **attributes: Any) -> None:  # noqa: ANN401 -- Typer's own
        attributes["params"] = [*(attributes.get("params") or []), watch_option()]
        super().__init__(name, **attributes)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 -- Typer's private types
        """Let --watch stand alone."""
        return super().parse_args(ctx, with_bare_watch(args))

    def carry_out(self, ctx: Any) -> Any:  # noqa: ANN401 -- Typer's private types
        """Look once, or again and again."""
        settings = settings_of(ctx)
        if settings.listing.watch_s is None:
            return self.carry_out_paged(ctx) if sys.stdout.isatty() else super().carry_out(ctx)
        watch_page(settings, lambda: super(Page, self).carry_out(ctx), settings.listing.watch_s)
        return None


def page(*kinds: Kind) -> type[Page]:
    """The class of a command that describes a thing, and prints these kinds."""
    return type("Page", (Page,), {"kinds": kinds})


def watch_page(settings: Settings, look: Callable[[], Any], interval_s: float) -> None:
    """Look until interrupted, or until the thing is gone.

    A terminal is redrawn at each look; elsewhere a page is printed only if it has changed.

    Raises:
        KeyboardInterrupt: it was interrupted.
        BrokenPipeError: nobody reads stdout any more.
        DssError: the first look found no daemon, or the thing is gone.
    """
    shown = _shown(settings, interval_s)
    began = away = False
    while True:
        text = shown.paper()
        try:
            with redirect_stdout(text):
                look()
        except _AWAY as silence:
            if not began:
                raise
            if not away:
                note(settings, f"{silence.message} It is asked again.")
            away = True
        else:
            if away:
                note(settings, "the daemon answers again")
            began, away = True, False
            shown.show(text.getvalue())
        time.sleep(interval_s)


class _Printed:
    """Each page that differs from the one before it."""

    paper = io.StringIO

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._last = ""

    def show(self, text: str) -> None:
        if text == self._last:
            return
        if self._last and self._settings.format not in {Format.JSONL, Format.JSON}:
            sys.stdout.write("---\n" if self._settings.format is Format.YAML else "\n")
        self._last = text
        sys.stdout.write(text)
        sys.stdout.flush()


class _OnScreen:
    """The newest page."""

    paper = Drawn

    def __init__(self, settings: Settings, interval_s: float) -> None:
        self._screen = Screen(settings, interval_s)

    def show(self, text: str) -> None:
        self._screen.draw(text.splitlines())


def _shown(settings: Settings, interval_s: float) -> _Printed | _OnScreen:
    if sys.stdout.isatty() and settings.format in {Format.TABLE, Format.WIDE}:
        settings.quiet = True  # notes would tear the screen
        return _OnScreen(settings, interval_s)
    return _Printed(settings)

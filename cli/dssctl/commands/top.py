"""``dssctl top``: the dashboard, and without a terminal one look at all of it."""

import os
import sys
from typing import Annotated

import typer

from dssctl.commands.daemon import STATUS_COLUMNS
from dssctl.output import Kind
from dssctl.settings import Format, Settings
from dssctl.tree import settings_of, showing, verb_alone

app = verb_alone("top")

LOOK_KIND = Kind(
    "Look",
    tuple(column for column in STATUS_COLUMNS if column.field != "groups"),
    lambda item: str(item["boot_id"]),
)


@app.command(cls=showing(LOOK_KIND))
def top(
    context: typer.Context,
    screen: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SCREEN]...", help="groups, topics, group NAME, ...; see ? in it."),
    ] = None,
    every: Annotated[
        bool, typer.Option("-a", "--all", help="Private subscriptions of sessions too.")
    ] = False,
    ascii_only: Annotated[bool, typer.Option("--ascii", help="Draw with plain ASCII.")] = False,
    theme: Annotated[str, typer.Option(metavar="THEME", help="dark (default) or light.")] = "dark",
    record: Annotated[
        str | None, typer.Option(metavar="FILE", help="Record what is watched, for --replay.")
    ] = None,
    replay: Annotated[
        str | None, typer.Option(metavar="FILE", help="Show what was recorded, without a daemon.")
    ] = None,
) -> None:
    """Show all of a daemon as it changes; without a terminal, print once how it is.

    In it, ? shows the keys, and ctrl+q ends it. What changes something opens the daemon's plan.
    """
    settings = settings_of(context)
    if theme not in ("dark", "light"):
        raise typer.BadParameter(f"'{theme}' is neither dark nor light.", ctx=context)
    if record is not None and replay is not None:
        raise typer.BadParameter("--record and --replay do not go together.", ctx=context)
    if not _at_terminal(settings):
        if record is not None or replay is not None:
            raise typer.BadParameter("a recording needs a terminal.", ctx=context)
        _require_meant(context, settings)
        _require_screen(context, screen or [])
        from dssctl.commands.one_look import print_look

        print_look(settings, LOOK_KIND, private=every)
        return
    _require_able(context)
    from dssctl.top.run import Options, show

    options = Options(" ".join(screen or ()), every, ascii_only, theme, record, replay)
    exit_code = show(settings, options)
    if exit_code:
        raise typer.Exit(exit_code)


def _at_terminal(settings: Settings) -> bool:
    """Whether a person looks; a program that wants a format gets one look."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return settings.format is Format.TABLE and all(stream.isatty() for stream in streams)


def _require_able(context: typer.Context) -> None:
    """Refuse the dashboard on a terminal that cannot be drawn on.

    Raises:
        typer.BadParameter: it reports that it cannot.
    """
    kind = os.environ.get("TERM", "")
    if kind in _UNABLE:
        reason = (
            f"the dashboard needs a terminal that can be drawn on, and TERM is '{kind}'; "
            "for one look in text: dssctl top -o wide; for each change a line: dssctl watch."
        )
        raise typer.BadParameter(reason, ctx=context)


_UNABLE = frozenset({"dumb", "unknown"})


def _require_screen(context: typer.Context, words: list[str]) -> None:
    """One look has no screens, but a name that does not exist is still a mistake.

    Raises:
        typer.BadParameter: it does not exist.
    """
    if words:
        from dssctl.top.stage.places_named import require_screen

        try:
            require_screen(words[0])
        except ValueError as problem:
            raise typer.BadParameter(str(problem), ctx=context) from problem


def _require_meant(context: typer.Context, settings: Settings) -> None:
    """If stdout of a person at a terminal goes elsewhere, they must say whether they want the
    dashboard.

    Raises:
        typer.BadParameter: they did not.
    """
    if sys.stdin.isatty() and not sys.stdout.isatty() and "output" not in settings.flags:
        reason = "the dashboard needs a terminal at stdout; for one look in text say -o table."
        raise typer.BadParameter(reason, ctx=context)

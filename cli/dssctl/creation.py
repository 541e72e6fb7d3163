"""The output of every ``create``: a sentence and what to do next, or all fields in a given format.

Invariant: if a format was asked for, by whatever origin, its output is complete.
"""

import sys
from collections.abc import Mapping

import typer

from dss_core.errors import ExistsOtherwise
from dssctl.output import Item, Kind, note, note_condition, show_one
from dssctl.output.escape import escaped
from dssctl.settings import Format, Settings


def show_created(
    settings: Settings, kind: Kind, item: Item, sentence: str, next_command: str
) -> None:
    """Print the present state."""
    if settings.format is not Format.TABLE or "output" in settings.flags:
        show_one(settings, kind, item)
        return
    sys.stdout.write(f"{escaped(sentence)}\n")
    note(settings, f"next: {next_command}")


def note_differences(
    context: typer.Context,
    settings: Settings,
    what: str,
    settled: Mapping[str, tuple[object, object]],
) -> None:
    """Tell how an existing one differs from the request: by flag, the wanted and the present
    value."""
    differences = [
        f"--{flag.replace('_', '-')} {asked} was asked for, and it has {found or 'none'}"
        for flag, (asked, found) in settled.items()
        if asked != found and _is_given(context, flag)
    ]
    if differences:
        note_condition(settings, ExistsOtherwise(what=what, differences="; ".join(differences)))


def _is_given(context: typer.Context, flag: str) -> bool:
    source = context.get_parameter_source(flag)
    return source is not None and source.name == "COMMANDLINE"

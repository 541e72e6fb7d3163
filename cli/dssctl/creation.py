"""What every ``create`` shows: a sentence and what to do next, or all of it in a format asked for.

Invariant: a format that was asked for, by whatever origin, is complete.
"""

import sys

from dssctl.output import Item, Kind, note, show_one
from dssctl.output.escape import escaped
from dssctl.settings import Format, Settings


def show_created(
    settings: Settings, kind: Kind, item: Item, sentence: str, next_command: str
) -> None:
    """Print what is there now."""
    if settings.format is not Format.TABLE or "output" in settings.flags:
        show_one(settings, kind, item)
        return
    sys.stdout.write(f"{escaped(sentence)}\n")
    note(settings, f"next: {next_command}")

"""Reads the text after a colon: the name of a screen, perhaps with a name of its subject.

Invariant: total: a text without a meaning gives the reason, and what may have been meant.
"""

from difflib import get_close_matches
from typing import TypeAlias

from dssctl.top.model.picture import Picture
from dssctl.top.model.places import Place
from dssctl.top.stage.screens import NAMES, SCREENS

QUITS = frozenset({"q", "quit", "exit"})
_UNNAMED = frozenset(
    {"record", "stream", "event", "actions", "facts", "dead-keys", "dead-records", "dead-letter"}
)
"""Screens that only a list leads to."""

Named: TypeAlias = "Place | str"
"""A place, or why there is none."""


def names() -> list[str]:
    """All texts that may be typed."""
    return sorted(name for name, noun in NAMES.items() if noun not in _UNNAMED and len(name) > 1)


def place_named(written: str, picture: Picture) -> Named:
    """The place that a text names."""
    name, _, argument = written.strip().removeprefix(":").partition(" ")
    argument = argument.strip()
    try:
        noun = require_screen(name)
    except ValueError as problem:
        return str(problem)
    one = noun.removesuffix("s")
    if argument and one in SCREENS and SCREENS[one].argument:
        noun = one
    screen = SCREENS[noun]
    if not screen.argument:
        return Place(noun)
    if not argument:
        return f":{name} takes a name"
    if screen.argument == "group":
        return _group_named(noun, argument, picture)
    return Place(noun, name=argument)


def require_screen(name: str) -> str:
    """The noun of a screen.

    Raises:
        ValueError: there is none of that name.
    """
    noun = NAMES.get(name.lower())
    if noun is None or noun in _UNNAMED:
        near = get_close_matches(name.lower(), names(), n=2)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(f"there is no screen {name}{meant}")
    return noun


def _group_named(noun: str, written: str, picture: Picture) -> Named:
    groups = picture.items.groups
    if written in groups:
        return Place(noun, group=written)
    found = [key for key, group in groups.items() if group.name == written]
    if len(found) == 1:
        return Place(noun, group=found[0])
    if found:
        return f"several groups are named {written}: {', '.join(sorted(found)[:3])}"
    near = get_close_matches(written, [group.name for group in groups.values()], n=2)
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"there is no group {written}{meant}"

"""The state of a group in a word, and its look by the daemon's verdict: the same on every
screen."""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from dss_client import Group

STUCK = "stuck"


def word_of(group: "Group") -> str:
    """The state; paused and stuck are states too."""
    if group.paused:
        return "paused"
    if group.health == "problem" and group.state in ("active", "idle"):
        return STUCK
    return group.state


def look_of(group: "Group") -> Literal["bad", "warn", "good", "dim"]:
    """The look by the verdict."""
    if group.health == "problem":
        return "bad"
    if group.health == "attention":
        return "warn"
    return "good" if group.state == "active" else "dim"

"""One thing that the doctor checked, and the result."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found."""

    check: str
    """A stable id, such as ``groups.stuck``."""
    level: Level
    text: str
    remedy: str = ""
    """What to do; empty if nothing need be done."""


def fine(check: str, text: str) -> Finding:
    """All is well."""
    return Finding(check, Level.OK, text)


def warning(check: str, text: str, remedy: str) -> Finding:
    """It will be a problem, or may be one."""
    return Finding(check, Level.WARNING, text, remedy)


def problem(check: str, text: str, remedy: str) -> Finding:
    """Somebody loses records, or work stands still."""
    return Finding(check, Level.PROBLEM, text, remedy)

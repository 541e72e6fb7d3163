"""Matches groups against the name patterns of a task."""

from collections.abc import Sequence
from fnmatch import fnmatchcase


def is_meant(name: str, patterns: Sequence[str]) -> bool:
    """Whether a group, NAME@FILTER, is one of those; a pattern may say the name alone."""
    short = name.partition("@")[0]
    return any(fnmatchcase(name, each) or fnmatchcase(short, each) for each in patterns)

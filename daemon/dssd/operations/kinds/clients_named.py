"""Clients in the sentences of a plan, and verbs that agree with how many they are."""

from collections.abc import Sequence

MEMBERS_NAMED_MAX = 10
"""How many members a sentence of a plan names; the plan has a list of all."""


def named(clients: Sequence[str]) -> str:
    """``anna``, ``anna and bert``; of many, some names and the number of the others."""
    more = len(clients) - MEMBERS_NAMED_MAX
    shown = list(clients[:MEMBERS_NAMED_MAX]) + ([f"{more} more"] if more > 0 else [])
    *first, last = shown
    return f"{', '.join(first)} and {last}" if first else last


def they(clients: Sequence[str], one: str, many: str) -> str:
    """The clients, and what they do: ``anna gives``, ``anna and bert give``."""
    return f"{named(clients)} {one if len(clients) == 1 else many}"

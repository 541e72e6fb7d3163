"""The part of list commands that serves completion: it stores the names that were just shown.

Invariant: it costs one write of a file, and its failures are ignored.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from dssctl.completing.names_kept import folder_for, keep
from dssctl.output.model import Item, Kind

_ABOUT = {
    "groups": ("filter",),
    "ops": ("kind", "subject"),
    "sessions": ("state",),
    "borrowers": ("group",),
    "contexts": ("endpoint",),
    "schedules": ("cron", "task"),
    "jobs": ("kind", "state"),
}
"""For each kind of name, the fields that tell a person what it is."""


def remember(names: str, kind: Kind, items: Sequence[Item]) -> None:
    """Store the names of a whole list, for the daemon that this process was called for."""
    folder = folder_for(sys.argv[1:], os.environ)
    identities = [kind.identity(item) for item in items]
    if names == "groups":
        identities = list(_short(identities))
    about = (_about(item, _ABOUT.get(names, ())) for item in items)
    keep(folder, names, zip(identities, about, strict=True))
    if names == "topics":
        keep(folder, "streams", ((each, "") for item in items for each in _streams(item)))


def _short(identities: Sequence[str]) -> Iterator[str]:
    """NAME of NAME@FILTER, if only one group has it."""
    count = Counter(each.partition("@")[0] for each in identities)
    for identity in identities:
        name = identity.partition("@")[0]
        yield name if count[name] == 1 else identity


def _about(item: Item, fields: Sequence[str]) -> str:
    return " ".join(str(item[field]) for field in fields if item.get(field))


def _streams(topic: Item) -> Iterator[str]:
    """Streams of the storage topic that takes new records; older ones are seldom named."""
    ordinal, partitions = topic["produce_ordinal"], topic["partitions"]
    assert isinstance(ordinal, int)
    assert isinstance(partitions, int)
    return (f"{topic['name']}/{ordinal}/{each}" for each in range(partitions))

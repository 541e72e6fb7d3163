"""Lanes, for client and daemon: the levels of a stream in a group with queues.

A lane is a stream with the group's *retry queue* and *dead letters* for it. A record that fails is
moved from level to level: it is appended to a queue, and once that is durable, it is acknowledged
where it was. A queue holds *entries*: records with two more headers.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from dss_core.errors import HeaderReserved
from dss_core.limits import ERROR_TEXT_BYTES_MAX as ERROR_TEXT_BYTES_MAX
from dss_core.limits import LEVELS_MAX as LEVELS_MAX
from dss_core.limits import RECORDS, RecordLimits

ENTRY_BYTES_MAX = 2_048 + 512
"""What the two headers of an entry add to a record at most, so that a full one fits into a queue
too: two texts of an error, the name of a client, and numbers."""


MAIN, RETRY, DEAD = 0, 1, 2
"""The levels: the stream itself, its retry queue, its dead letters."""


def grant_and_level(number: int) -> tuple[int, int]:
    """Split a number into grant and level."""
    level = number % LEVELS_MAX
    return number - level, level


LANE_HEADER = "dss-lane"
"""A `LaneEntry` of `lanes.proto`, serialised."""

ERROR_HEADER = "dss-error"
"""The text of the last error, UTF-8."""

ENTRY_HEADERS = 2

ENTRIES = RecordLimits(
    RECORDS.record_bytes + ENTRY_BYTES_MAX,
    RECORDS.headers + ENTRY_HEADERS,
    RECORDS.header_bytes + ENTRY_BYTES_MAX,
    reserved_headers=True,
)
"""What an entry may have."""

RESERVED_HEADERS = frozenset({LANE_HEADER, "dss-due", ERROR_HEADER})
RESERVED_HEADER_PREFIX = "dss-mqtt-"
"""Headers that no producer may set."""

_PERHAPS_RESERVED = re.compile(rb"dss-(?:lane|due|error|mqtt-)")

_INTERNAL = re.compile(r"~(?:retry|dead)\.\d+\.\d+", re.ASCII)

QUEUES = "queues"
"""The feature of a client that knows levels."""

ORDERED = "ordered"
"""The feature of a client that hands out one record of a key at a time."""

METADATA = "metadata"
"""The feature of a daemon that keeps metadata with a group, and removes unused groups."""


STEERED = "steered"
"""The feature of a daemon that knows what operators do with single entries of queues."""

DEAD_LETTERS = "dead-letters"
"""The feature of a daemon that gives dead letters to readers and to bulk jobs."""

SHARDS = "shards"
"""The feature of a daemon that shares ordered groups out by shards."""


ATTEMPT, FOLLOWER = 0, 1
"""Kinds of entries: it failed; or it did not, and waits behind an earlier record of its key."""


class LaneEntry(NamedTuple):
    """What the header of an entry says; the words are those of `lanes.proto`."""

    source_level: int
    source_offset: int
    origin_ordinal: int
    origin_partition: int
    origin_offset: int
    origin_time_us: int
    attempt: int = 0
    """Attempts that failed so far."""
    redrives: int = 0
    operation: int = 0
    due_ms: int = 0
    """Wall clock."""
    first_failure_ms: int = 0
    cause: str = ""
    error_type: str = ""
    fingerprint: int = 0
    client_id: str = ""
    grant_epoch: int = 0
    cursor_generation: int = 0
    kind: int = ATTEMPT
    source_ordinal: int | None = None
    """The lane of the source; None: the entry's own lane."""
    source_partition: int = 0

    @property
    def is_rehomed(self) -> bool:
        """Whether it was made from an entry of another lane, whose source is then finished."""
        return self.source_ordinal is not None


def internal_name(level: int, group_id: int, topic_id: int) -> str:
    """The name of the topic that holds a group's queues of a topic.

    It begins with a character that no other name may have.
    """
    return f"~{'retry' if level == RETRY else 'dead'}.{group_id}.{topic_id}"


def is_internal(topic: str) -> bool:
    """Whether topics that hold queues have such names."""
    return _INTERNAL.fullmatch(topic) is not None


def is_reserved(header: str) -> bool:
    """Whether no producer may set the header."""
    return header in RESERVED_HEADERS or header.startswith(RESERVED_HEADER_PREFIX)


def holds_reserved(names: bytes | memoryview) -> bool:
    """Whether there may be a reserved one among names of headers that stand end to end."""
    return _PERHAPS_RESERVED.search(names) is not None


def refuse_reserved(headers: Iterable[str]) -> None:
    """Check names of headers that a producer sets.

    Raises:
        HeaderReserved: one is reserved.
    """
    for header in headers:
        if is_reserved(header):
            raise HeaderReserved(header=header)


def cut_text(text: str) -> str:
    """A text of an error, no longer than it may be in UTF-8."""
    # No character takes less than a byte.
    raw = text[:ERROR_TEXT_BYTES_MAX].encode("utf-8", "replace")
    if len(raw) <= ERROR_TEXT_BYTES_MAX:
        return raw.decode()
    return raw[:ERROR_TEXT_BYTES_MAX].decode("utf-8", "ignore")

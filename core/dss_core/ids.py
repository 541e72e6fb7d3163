"""Names of things that several parts pass to each other.

Invariant: values only; equal ids name the same thing forever, for ids are never reused.
"""

from typing import NamedTuple

from dss_core.errors import IllegalName
from dss_core.filters import check_name
from dss_core.lane import is_internal


class StreamId(NamedTuple):
    """One partition of one storage topic, as the log and the store key it."""

    storage_topic_id: int
    partition: int

    def __str__(self) -> str:
        """As an error says it where nobody knows the topic any more."""
        return f"{self.storage_topic_id}:{self.partition}"


class StreamName(NamedTuple):
    """A stream as people write it: ``orders/0/3``."""

    topic: str
    ordinal: int
    """Which storage topic of the topic, from 0."""
    partition: int

    def __str__(self) -> str:
        """The stream as people write it."""
        return f"{self.topic}/{self.ordinal}/{self.partition}"

    @classmethod
    def parse(cls, text: str) -> "StreamName":
        """Read ``TOPIC/ORDINAL/PARTITION``.

        Raises:
            IllegalName: the text has another form, or the topic's name breaks its rule.
        """
        parts = text.split("/")
        if len(parts) != 3 or not all(_is_small_number(part) for part in parts[1:]):
            raise IllegalName(name=repr(text), rule="a stream is written TOPIC/ORDINAL/PARTITION")
        if not is_internal(parts[0]):  # the daemon knows better what to say of such a one
            check_name(parts[0])
        return cls(parts[0], int(parts[1]), int(parts[2]))


def _is_small_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9

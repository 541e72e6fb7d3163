"""Compares how far groups have read each stream with the end of the log.

A disk that dropped what it had synced, or a file that somebody removed, leaves a log that ends
below offsets which groups have consumed. New records at those offsets would count as consumed, and
no group would ever be given them. So such a stream continues after them::

         read by groups, there        gone                  new records
    ├───────────────────────────┼───────────────────────┼─────────────────▶
                               end                   reached

Invariant: an offset that a group was given is never assigned again. This module must not know
groups: it gets the offsets up to which streams were read.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

AskReached = Callable[[], Awaitable[Mapping[int, Mapping[int, int]]]]
"""The offset up to which each stream was read, by storage topic and partition; unread streams may
be missing."""


@dataclass(frozen=True, slots=True)
class ShortStream:
    """A stream whose log ends below what was read of it."""

    storage_topic_id: int
    partition: int
    end: int
    """The offset after the last record that exists."""
    reached: int
    """The offset after the last record that was read: the stream continues here."""


async def nobody_read() -> Mapping[int, Mapping[int, int]]:
    """For a log without groups."""
    return {}


class ReachedOffsets:
    """Asks once, and only if a start has a reason to."""

    def __init__(self, ask: AskReached) -> None:
        self._ask = ask
        self._known: Mapping[int, Mapping[int, int]] | None = None

    async def of(self, storage_topic_id: int) -> Mapping[int, int]:
        """How far each partition was read."""
        if self._known is None:
            self._known = await self._ask()
        return self._known.get(storage_topic_id, {})


def short_streams(
    storage_topic_id: int, ends: Sequence[int], reached: Mapping[int, int]
) -> Iterator[ShortStream]:
    """The streams that end below what was read of them."""
    for partition, end in enumerate(ends):
        if reached.get(partition, 0) > end:
            yield ShortStream(storage_topic_id, partition, end, reached[partition])

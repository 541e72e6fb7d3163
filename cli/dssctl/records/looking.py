"""Looking at records of spans: the newest ones, those from a place on, all that match.

Invariant: of each stream records come in order. What is held in memory is bounded by how many are
wanted. Damage is told when it is met, and raised when all else was looked at.
"""

import heapq
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from dss_core.errors import StreamDamaged
from dssctl.records.patterns import Pattern, bounded
from dssctl.records.places import Span, at_once, first_record

if TYPE_CHECKING:
    from dss_client import Batch, Client

Tell = Callable[[StreamDamaged], None]


class Found(NamedTuple):
    """A record; sorts by when it was appended, as exactly as that is known."""

    append_time_us: int
    """Of its frame: all of a frame, and those of others in one group commit, have the same."""
    timestamp_us: int
    offset: int
    stream: str
    subject: str
    key: bytes | None
    payload: bytes
    headers: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class RecordsWanted:
    """What a record must have; None: anything."""

    key: bytes | None = None
    pattern: Pattern | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    """Names, each with its value unless any will do."""
    subject: str | None = None
    """A filter, which the daemon applies."""

    def rows(self, batch: "Batch") -> Iterator[int]:
        """Which rows of the batch have it.

        Raises:
            PatternTooSlow: the pattern takes too long.
        """
        rows: Sequence[int] = range(len(batch))
        if self.key is not None:
            keys = batch.keys
            rows = [row for row in rows if keys[row] == self.key]
        if self.headers:
            rows = [row for row in rows if self._has_headers(batch.headers[row])]
        if self.pattern is None or not rows:
            return iter(rows)
        payloads, pattern = batch.payloads, self.pattern
        with bounded(pattern.text):
            return iter([row for row in rows if pattern.is_in(payloads[row])])

    def takes(
        self, key: bytes | None, headers: Sequence[tuple[str, bytes]], payload: bytes
    ) -> bool:
        """Whether a single record has it, its subject aside.

        Raises:
            PatternTooSlow: the pattern takes too long.
        """
        if self.key not in (None, key) or not self._has_headers(headers):
            return False
        if self.pattern is None:
            return True
        with bounded(self.pattern.text):
            return self.pattern.is_in(payload)

    def _has_headers(self, headers: Sequence[tuple[str, bytes]]) -> bool:
        return all(
            any(name == has and value in (None, content) for has, content in headers)
            for name, value in self.headers
        )


@dataclass(slots=True)
class Look:
    """How far a look has come."""

    spans: Sequence[Span]
    looked: int = 0
    """Offsets."""
    damage: StreamDamaged | None = None
    """The first damage that was met."""
    unlooked: tuple[Span, ...] = ()
    """The spans that it did not reach."""

    @property
    def total(self) -> int:
        """Offsets of all spans."""
        return sum(span.length for span in self.spans)


async def newest(client: "Client", look: Look, count: int, tell: Tell) -> list[Found]:
    """The last so many records by when they were appended, the oldest of them first."""
    best: list[Found] = []

    async def take(span: Span) -> bool:
        any_came = False
        async with aclosing(_batches(client, span, None, look, tell)) as batches:
            async for batch in batches:
                any_came = True
                best.extend(_found(batch, row) for row in range(len(batch)))
                best[:] = heapq.nlargest(count, best)
        return any_came

    async def look_at(span: Span) -> None:
        tail = replace(span, start=max(span.end - count, span.start))
        if not await take(tail) and tail.start > span.start:
            await take(await _before_gap(client, span, tail.start, count))

    await at_once(look.spans, look_at)
    return sorted(best)


async def first(client: "Client", look: Look, count: int, tell: Tell) -> list[Found]:
    """The first so many records by when they were appended."""
    best: list[Found] = []

    async def look_at(span: Span) -> None:
        async with aclosing(_batches(client, span, None, look, tell, count)) as batches:
            async for batch in batches:
                best.extend(_found(batch, row) for row in range(len(batch)))
                best[:] = heapq.nsmallest(count, best)

    await at_once(look.spans, look_at)
    return best


async def matching(
    client: "Client", look: Look, wanted: RecordsWanted, looked_max: int, tell: Tell
) -> AsyncGenerator[Found | None, None]:
    """Records that have what is wanted, stream by stream; ends at so many looked at.

    None stands for a step that is done, so that whoever looks on sees it go on.

    Raises:
        PatternTooSlow: the pattern takes too long.
    """
    for number, span in enumerate(look.spans):
        later = tuple(each for each in look.spans[number + 1 :] if each.length)
        look.unlooked = (span, *later)
        async with aclosing(_batches(client, span, wanted.subject, look, tell)) as batches:
            async for batch in batches:
                for row in wanted.rows(batch):
                    if batch.offsets[row] >= span.end:
                        break
                    look.unlooked = (_behind(span, batch.offsets[row]), *later)
                    yield _found(batch, row)
                rest = _behind(span, batch.offsets[-1])
                look.unlooked = (rest, *later) if rest.length else later
                yield None
                if look.looked >= looked_max:
                    return
    look.unlooked = ()


def _behind(span: Span, offset: int) -> Span:
    return replace(span, start=offset + 1)


async def _batches(
    client: "Client",
    span: Span,
    subject: str | None,
    look: Look,
    tell: Tell,
    records_max: int | None = None,
) -> "AsyncGenerator[Batch, None]":
    """The records of a span; the last batch may reach over its end."""
    if not span.length:
        return
    # Retention may have taken the first one since: the earliest is what is left.
    start = "earliest" if span.start <= span.kept_from else f"={span.start}"

    def on_damage(damage: StreamDamaged) -> None:
        look.damage = look.damage or damage
        tell(damage)

    reader = client.read(
        subject, stream=span.stream, start=start, records_max=records_max, on_damage=on_damage
    )
    at = span.start
    try:
        async with aclosing(reader.batches()) as batches:
            async for batch in batches:
                behind = min(batch.offsets[-1] + 1, span.end)
                look.looked += max(behind - at, 0)
                at = max(behind, at)
                yield batch
                if at >= span.end:
                    return
    except StreamDamaged:
        pass  # it was told above
    if records_max is None:
        look.looked += max(span.end - at, 0)


async def _before_gap(client: "Client", span: Span, gap: int, count: int) -> Span:
    """The part of a span with its last ``count`` records, if a kill left no records from ``gap``
    on."""
    low, high = span.start, gap
    while low + 1 < high:
        middle = (low + high) // 2
        if await first_record(client, span.stream, f"={middle}") is None:
            high = middle
        else:
            low = middle
    return replace(span, start=max(low - count + 1, span.start))


def _found(batch: "Batch", row: int) -> Found:
    return Found(
        append_time_us=batch.append_times_us[row],
        stream=batch.stream,
        offset=batch.offsets[row],
        subject=batch.subjects[row],
        key=batch.keys[row],
        payload=batch.payloads[row],
        headers=batch.headers[row],
        timestamp_us=batch.timestamps_us[row],
    )

"""Looking at records: gaps, damage, bounds, and what retention takes meanwhile."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from dss_core.errors import StreamDamaged
from dssctl.records.looking import Found, Look, RecordsWanted, first, matching, newest
from dssctl.records.places import Span

if TYPE_CHECKING:
    from dss_client import Client

BATCH_RECORDS = 4


@dataclass
class PlayedBatch:
    """Records of one stream, each with its offset as payload."""

    stream: str
    offsets: Sequence[int]

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def append_times_us(self) -> list[int]:
        return [offset // BATCH_RECORDS for offset in self.offsets]

    timestamps_us = append_times_us

    @property
    def payloads(self) -> list[bytes]:
        return [str(offset).encode() for offset in self.offsets]

    @property
    def keys(self) -> list[bytes | None]:
        return [b"even" if offset % 2 == 0 else None for offset in self.offsets]

    @property
    def subjects(self) -> list[str]:
        return ["s"] * len(self)

    @property
    def headers(self) -> list[tuple[tuple[str, bytes], ...]]:
        return [()] * len(self)


@dataclass
class PlayedClient:
    """Streams as sets of offsets; what is damaged is told and raised at the end."""

    streams: dict[str, list[int]]
    damaged: dict[str, int] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)

    def read(
        self,
        _subject: str | None = None,
        *,
        stream: str,
        start: str,
        records_max: int | None = None,
        on_damage: Callable[[StreamDamaged], None],
    ) -> "PlayedReader":
        self.reads.append(start)
        low = 0 if start == "earliest" else int(start.removeprefix("="))
        offsets = [offset for offset in self.streams[stream] if offset >= low]
        damage = self.damaged.get(stream)
        told = damage is not None and damage >= low
        fault = StreamDamaged(stream=stream, offset=damage, last=damage) if told else None
        return PlayedReader(stream, offsets[:records_max], fault, on_damage)


@dataclass
class PlayedReader:
    stream: str
    offsets: list[int]
    fault: StreamDamaged | None
    on_damage: Callable[[StreamDamaged], None]

    async def batches(self) -> AsyncGenerator[PlayedBatch, None]:
        if self.fault is not None:
            self.on_damage(self.fault)
        for at in range(0, len(self.offsets), BATCH_RECORDS):
            yield PlayedBatch(self.stream, self.offsets[at : at + BATCH_RECORDS])
        if self.fault is not None:
            raise self.fault


def client_of(played: PlayedClient) -> "Client":
    return cast("Client", played)


def untold(damage: StreamDamaged) -> None:
    raise AssertionError(damage)


def offsets(found: Sequence[Found]) -> list[int]:
    return [each.offset for each in found]


async def found_by(
    played: PlayedClient, look: Look, wanted: RecordsWanted, looked_max: int
) -> list[int]:
    found = matching(client_of(played), look, wanted, looked_max, untold)
    return [each.offset async for each in found if each is not None]


async def test_the_newest_records_lie_before_a_gap_at_the_end() -> None:
    played = PlayedClient({"t/0/0": list(range(100))})
    look = Look([Span("t/0/0", 0, 1_000_100, 0)])
    assert offsets(await newest(client_of(played), look, 3, untold)) == [97, 98, 99]
    assert len(played.reads) < 30


async def test_an_empty_stream_and_one_that_is_only_a_gap_have_no_newest_record() -> None:
    played = PlayedClient({"t/0/0": [], "t/0/1": []})
    look = Look([Span("t/0/0", 5, 5, 5), Span("t/0/1", 0, 50, 0)])
    assert await newest(client_of(played), look, 3, untold) == []


async def test_records_of_one_append_time_are_taken_from_all_streams() -> None:
    played = PlayedClient({"t/0/0": list(range(4)), "t/0/1": list(range(4))})
    look = Look([Span("t/0/0", 0, 4, 0), Span("t/0/1", 0, 4, 0)])
    found = await newest(client_of(played), look, 4, untold)
    assert [(each.stream, each.offset) for each in found] == [
        ("t/0/0", 2), ("t/0/1", 2), ("t/0/0", 3), ("t/0/1", 3),
    ]  # fmt: skip
    assert offsets(await first(client_of(played), look, 2, untold)) == [0, 0]


async def test_a_search_ends_at_its_bound_and_knows_where_it_did_not_look() -> None:
    played = PlayedClient({"t/0/0": list(range(10)), "t/0/1": list(range(10))})
    look = Look([Span("t/0/0", 0, 10, 0), Span("t/0/1", 0, 10, 0)])
    assert await found_by(played, look, RecordsWanted(key=b"even"), 5) == [0, 2, 4, 6]
    assert look.unlooked == (Span("t/0/0", 8, 10, 0), Span("t/0/1", 0, 10, 0))
    whole = Look([Span("t/0/0", 0, 10, 0), Span("t/0/1", 0, 10, 0)])
    assert len(await found_by(played, whole, RecordsWanted(key=b"even"), 1_000)) == 10
    assert (whole.looked, whole.unlooked) == (20, ())


async def test_a_search_ends_at_the_end_of_its_span_though_records_come() -> None:
    played = PlayedClient({"t/0/0": list(range(50))})
    look = Look([Span("t/0/0", 2, 6, 0)])
    assert await found_by(played, look, RecordsWanted(), 1_000) == [2, 3, 4, 5]
    assert (look.looked, look.unlooked) == (4, ())


async def test_damage_is_told_and_the_other_streams_are_looked_at() -> None:
    played = PlayedClient({"t/0/0": [0, 1, 3], "t/0/1": [0]}, {"t/0/0": 2})
    look = Look([Span("t/0/0", 0, 4, 0), Span("t/0/1", 0, 1, 0)])
    told: list[StreamDamaged] = []
    found = matching(client_of(played), look, RecordsWanted(), 1_000, told.append)
    assert [each.offset async for each in found if each is not None] == [0, 1, 3, 0]
    assert [each.fields["offset"] for each in told] == ["2"]
    assert look.damage is told[0]
    assert look.unlooked == ()


async def test_a_look_from_the_first_kept_record_takes_what_retention_left() -> None:
    played = PlayedClient({"t/0/0": [7, 8]})
    look = Look([Span("t/0/0", 5, 9, 5)])
    assert await found_by(played, look, RecordsWanted(), 1_000) == [7, 8]
    assert played.reads == ["earliest"]

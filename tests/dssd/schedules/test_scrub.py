"""A scrub finds what rotted in sealed segments, and names it."""

import asyncio
import errno
import os
import time
from pathlib import Path

import pytest

from dss_core.errors import TaskFailed, TopicNotFound
from dss_core.ids import StreamId
from dssd.events.model import Event
from dssd.schedules.tasks.scrub import scrub
from dssd.store.rows import SegmentRow
from support.played_schedules import Heard, ScheduledWorks
from support.segment_bytes import flip, frame_places


class Log:
    """A topic with three sealed segments, of five frames in each of two streams."""

    def __init__(self, works: ScheduledWorks) -> None:
        self.plant = works.plant
        self.told: list[Event] = []
        self.said = Heard()
        self.streams: tuple[StreamId, ...]

    async def fill(self) -> None:
        self.streams = await self.plant.topic("orders", 2)
        for _ in range(3):
            for _ in range(5):
                for stream in self.streams:
                    await self.plant.publish(stream, 2)
            await self.plant.log.roll(self.topic_id)
        while await self.sealed() < 3:  # noqa: ASYNC110 - rows tell nobody
            await asyncio.sleep(0.001)

    @property
    def topic_id(self) -> int:
        return self.streams[0].storage_topic_id

    async def sealed(self) -> int:
        return sum(f.row.state == "sealed" for f in await self.plant.store.scan(SegmentRow))

    def files(self) -> list[Path]:
        return sorted(self.plant.directory.glob("*.seg"))

    async def scrub(self, **arguments: str) -> None:
        task = scrub(self.plant.catalogue, self.plant.log.scrubbed, self.told.append)
        await task.work(task.given(arguments), self.said)


@pytest.fixture
async def log(works: ScheduledWorks) -> Log:
    made = Log(works)
    await made.fill()
    return made


async def test_a_whole_log_is_read_and_said(log: Log) -> None:
    await log.scrub()
    assert len(log.said) == 1
    assert log.said[0].startswith("3 segments, ")
    assert log.said[0].endswith("were read: all of it is as it was written.")
    assert log.told == []


@pytest.mark.parametrize("bit", [0, 7])
async def test_a_flipped_bit_is_found_and_told_with_its_stream_and_offsets(
    log: Log, bit: int
) -> None:
    path = log.files()[1]
    flip(path, frame_places(path)[2] + 90, bit)
    with pytest.raises(TaskFailed, match=r"damage in 1 place of 3 segments, "):
        await log.scrub()
    [event] = log.told
    assert (event.kind.code, event.subject) == ("stream.damaged", "orders/0/0")
    assert (event.fields["start"], event.fields["end"]) == ("12", "14")
    assert event.sentence == f"A scrub found damage: 2 records, offsets 12 to 13, in {path.name}."
    assert log.said[0].startswith("orders/0/0: ")


async def test_damage_of_each_stream_and_file_is_told(log: Log) -> None:
    first, _, third = log.files()[:3]
    places = frame_places(first)
    flip(first, places[0] + 90)
    flip(first, places[-1] + 90)
    os.truncate(third, third.stat().st_size - 1)
    with pytest.raises(TaskFailed, match="3 places"):
        await log.scrub()
    assert sorted(event.subject for event in log.told) == ["orders/0/0", "orders/0/1", "orders/0/1"]


@pytest.mark.parametrize("what", ["index", "header", "missing"])
async def test_damage_of_a_file_as_a_whole_is_told(log: Log, what: str) -> None:
    path = log.files()[0]
    match what:
        case "index":
            flip(path.with_suffix(".idx"), 40)
        case "header":
            flip(path, 3)
        case _:
            path.unlink()
    with pytest.raises(TaskFailed, match="1 place"):
        await log.scrub()
    [event] = log.told
    assert event.subject == "orders"
    assert {"index": "its index", "header": "its header", "missing": "missing"}[what] in (
        event.sentence
    )


class Disk:
    """Reads wrongly as often as it is told, beyond the headers of files."""

    def __init__(self, *, wrong: int, error: int = 0) -> None:
        self._wrong = wrong
        self._error = error
        self._pread = os.pread

    def pread(self, fd: int, size: int, position: int) -> bytes:
        if not position or not self._wrong:
            return self._pread(fd, size, position)
        self._wrong -= 1
        if self._error:
            raise OSError(self._error, "as a disk does")
        return bytes(size)


@pytest.mark.parametrize("error", [0, errno.EIO])
async def test_what_is_read_well_at_the_second_time_is_no_damage(
    log: Log, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    monkeypatch.setattr(os, "pread", Disk(wrong=1, error=error).pread)
    await log.scrub()
    assert log.told == []
    assert log.said[0].endswith("were read: all of it is as it was written.")


async def test_what_the_disk_cannot_read_twice_is_damaged_as_a_whole(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pread", Disk(wrong=1_000, error=errno.EIO).pread)
    with pytest.raises(TaskFailed, match="damage in"):
        await log.scrub()
    lost = {(each.subject, each.fields["start"], each.fields["end"]) for each in log.told}
    places = (("0", "10"), ("10", "20"), ("20", "30"))
    assert lost == {(f"orders/0/{number}", *place) for number in (0, 1) for place in places}


async def test_a_disk_that_fails_otherwise_says_nothing_of_the_records(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pread", Disk(wrong=1, error=errno.EBADF).pread)
    with pytest.raises(OSError, match="as a disk does"):
        await log.scrub()
    assert log.told == []


async def test_what_retention_takes_meanwhile_is_no_damage(log: Log) -> None:
    await log.plant.log.trim(log.streams[0], 10)
    await log.plant.log.trim(log.streams[1], 10)
    await log.scrub()
    assert log.told == []


async def test_one_topic_is_read_where_one_is_named(log: Log) -> None:
    await log.plant.topic("others", 1)
    await log.scrub(topic="others")
    assert log.said == ["nothing was read: no segment is sealed yet."]
    with pytest.raises(TopicNotFound):
        await log.scrub(topic="nothing")


async def test_no_more_is_read_than_the_rate_allows(log: Log) -> None:
    size_bytes = sum(path.stat().st_size for path in log.files()[:2])
    began_s = time.monotonic()
    await log.scrub(rate=f"{size_bytes * 5}B")
    assert time.monotonic() - began_s >= 0.15

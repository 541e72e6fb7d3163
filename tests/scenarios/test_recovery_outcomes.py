"""What a daemon makes of segment files that a crash or a bad disk has harmed.

Each test kills a daemon, harms its files, starts it again, and looks at everything that people can
see: the records over the wire, the next offset, and what ``dssctl daemon status`` says.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dss_core.frame import HEADER_BYTES as FRAME_HEADER_BYTES
from dssd.log.segment.file import HEADER_BYTES
from support.daemon_process import DaemonProcess, running
from support.raw_stubs import Stubs, connected
from support.raw_topic import Found, RawTopic
from support.segment_bytes import flip, frame_places
from support.started_program import started

ABC = {0: b"a", 1: b"b", 2: b"c"}
Quarantined = list[tuple[str, str]]
"""Name and reason of each file."""


@asynccontextmanager
async def served(directory: Path) -> AsyncIterator[tuple[DaemonProcess, Stubs]]:
    """A daemon, and stubs of it; killed at the end."""
    async with (
        running("--data-dir", str(directory)) as daemon,
        connected(daemon.endpoint) as stubs,
    ):
        yield daemon, stubs


async def a_b_c(directory: Path, *, below_watermark: bool = False) -> RawTopic:
    """Leave three records behind, as a killed daemon does."""
    async with served(directory) as (daemon, stubs):
        topic = await RawTopic.created(stubs, "orders")
        assert await topic.put(stubs, *ABC.values()) == list(ABC)
        if below_watermark:
            assert await daemon.stop() == 0
    if below_watermark:  # the next kill takes the sign of a clean stop away
        async with served(directory):
            pass
    return topic


async def status(daemon: DaemonProcess) -> Quarantined:
    command = ("-m", "dssctl", "--endpoint", daemon.endpoint, "daemon", "status", "-o", "json")
    asked = await started(*command, pipes=["stdout"])
    printed, _ = await asked.communicate()
    assert asked.returncode == 0
    item = json.loads(printed)["item"]
    assert item["state"] == "serving"
    return [(Path(each["file"]).name, each["reason"]) for each in item["quarantined"]]


def only_segment(directory: Path) -> Path:
    (path,) = (directory / "log").glob("*.seg")
    return path


def set_aside(directory: Path) -> list[Path]:
    return sorted((directory / "log" / "quarantine").glob("*"))


def kept_as_they_were(directory: Path) -> list[bytes]:
    """The contents of all segment files, those that were set aside too."""
    return [path.read_bytes() for path in (directory / "log").rglob("*.seg")]


def damaged_at(found: Found) -> int:
    assert found.ended is None, "it goes on behind the damage"
    ((start, _),) = found.damaged
    return start


async def test_a_torn_tail_is_set_aside_and_its_offset_given_anew(directory: Path) -> None:
    topic = await a_b_c(directory)
    segment = only_segment(directory)
    torn = topic.frame(b"never acknowledged")[:-5]
    with segment.open("ab") as file:
        file.write(torn)
    async with served(directory) as (daemon, stubs):
        assert await topic.read(stubs) == Found(ABC)
        ((name, reason),) = await status(daemon)
        assert name == segment.name
        assert reason.startswith(f"torn tail: {len(torn)} bytes after byte ")
        (kept,) = set_aside(directory)
        assert kept.read_bytes().endswith(torn)
        again = RawTopic(topic.name, topic.topic_epoch)
        assert await again.put(stubs, b"d") == [3]
        assert await topic.read(stubs) == Found({**ABC, 3: b"d"})
    async with served(directory) as (daemon, stubs):
        assert await topic.read(stubs) == Found({**ABC, 3: b"d"})
        assert await status(daemon) == []


async def test_a_bad_frame_before_a_whole_one_is_damage_and_the_whole_one_is_read(
    directory: Path,
) -> None:
    topic = await a_b_c(directory)
    segment = only_segment(directory)
    _, start, end = frame_places(segment)
    flip(segment, start + FRAME_HEADER_BYTES)
    harmed = segment.read_bytes()
    async with served(directory) as (daemon, stubs):
        found = await topic.read(stubs)
        assert found.records == {0: b"a", 2: b"c"}
        assert damaged_at(found) == 1
        told = f"damaged bytes: {start}..{end} (offset 1 of partition 0)"
        assert await status(daemon) == [(segment.name, told)]
        assert harmed in kept_as_they_were(directory), "damage is never cut away"
        assert await topic.put(stubs, b"d") == [3]
        assert (await topic.read(stubs)).records == {0: b"a", 2: b"c", 3: b"d"}


async def test_an_empty_active_file_never_existed(directory: Path) -> None:
    topic = await a_b_c(directory)
    segment = only_segment(directory)
    segment.write_bytes(b"")
    async with served(directory) as (daemon, stubs):
        assert await topic.read(stubs) == Found()
        assert await status(daemon) == [(segment.name, "it has no whole header and no frame")]
        assert [path.name for path in set_aside(directory)] == [segment.name]
        assert await RawTopic(topic.name, topic.topic_epoch).put(stubs, b"x") == [0]


async def test_a_header_only_file_is_taken_up_again(directory: Path) -> None:
    topic = await a_b_c(directory)
    segment = only_segment(directory)
    segment.write_bytes(segment.read_bytes()[:HEADER_BYTES])
    async with served(directory) as (daemon, stubs):
        assert await topic.read(stubs) == Found()
        assert await status(daemon) == []
        assert await RawTopic(topic.name, topic.topic_epoch).put(stubs, b"x") == [0]
        assert only_segment(directory) == segment


async def test_a_watermark_above_the_tail_is_damage_and_its_offsets_are_not_given_again(
    directory: Path,
) -> None:
    topic = await a_b_c(directory, below_watermark=True)
    segment = only_segment(directory)
    size, cut = segment.stat().st_size, frame_places(segment)[2]
    segment.write_bytes(segment.read_bytes()[:cut])
    async with served(directory) as (daemon, stubs):
        found = await topic.read(stubs)
        assert found.records == {0: b"a", 1: b"b"}
        assert damaged_at(found) == 2
        reason = f"it ends at byte {cut}, below its watermark {size}"
        assert await status(daemon) == [(segment.name, reason)]
        # Nobody can say how many records the bytes held: at most one a byte.
        again = RawTopic(topic.name, topic.topic_epoch)
        assert await again.put(stubs, b"d") == [2 + size - cut]


async def test_a_flipped_bit_in_a_sealed_segment_costs_the_record_that_it_hit_and_no_other(
    directory: Path,
) -> None:
    topic = await a_b_c(directory, below_watermark=True)
    sealed = only_segment(directory)
    starts = frame_places(sealed)
    end = sealed.stat().st_size
    async with served(directory) as (_, stubs):
        assert await topic.put(stubs, b"d") == [3]
    whole = sealed.read_bytes()
    stored = {**ABC, 3: b"d"}
    async with served(directory) as (daemon, stubs):
        # The kill has sealed the first file; what lay above its watermark is in another now.
        assert len(list((directory / "log").glob("*.seg"))) == 2
        for position in range(HEADER_BYTES, end):
            flip(sealed, position, bit=position % 8)
            found = await topic.read(stubs)
            hit = sum(start <= position for start in starts) - 1
            assert found.records == {at: own for at, own in stored.items() if at != hit}
            assert damaged_at(found) == hit
            sealed.write_bytes(whole)
        assert await topic.read(stubs) == Found(stored)
        assert await status(daemon) == []

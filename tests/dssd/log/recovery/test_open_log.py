"""A start that dies on its way: what producers had sent stays known, whatever it deleted.

The frames may be gone by retention: then only a snapshot knows who sent them.
"""

from collections.abc import Callable
from typing import Any

import pytest

from dss_core.ids import StreamId
from dssd.log.port import Appended
from dssd.log.recovery.topic import TopicRecovery
from dssd.log.settings import LogSettings
from dssd.store.port import Put

TOPIC = 7
Bench = Any
MakeFrame = Callable[..., bytes]
EARLY, LATE = b"who is trimmed  ", b"who comes later "


class Died(Exception):
    """The start ends here."""


def die(self: TopicRecovery, last: object) -> bool:
    raise Died


async def started_again_in_vain(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Die after rows were changed, before the snapshot of producers is stored."""
    await bench.crash()
    with monkeypatch.context() as patched:
        patched.setattr(TopicRecovery, "_save_producers", die)
        with pytest.raises(Died):
            await bench.open()
    await bench.open()


async def test_removing_a_file_whose_frames_were_copied_keeps_its_producers(
    bench: Bench, make_frame: MakeFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = make_frame(b"early", producer=EARLY)
    first = await bench.append(early)
    await bench.roll()
    await bench.append(make_frame(b"late", producer=LATE))
    await bench.log.trim(StreamId(TOPIC, 0), 1)
    await started_again_in_vain(bench, monkeypatch)
    repeated = await bench.append(early)
    assert isinstance(repeated, Appended), repeated
    assert (repeated.base_offset, repeated.repeated) == (first.base_offset, True)


async def test_removing_a_file_below_the_low_watermark_keeps_its_producers(
    make_bench: Callable[[LogSettings], Bench],
    make_frame: MakeFrame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = make_bench(LogSettings(watermark_bytes=1_000))
    await bench.prepare()
    await bench.open()
    early = make_frame(bytes(1_000), producer=EARLY)
    first = await bench.append(early)
    await bench.settle()
    await bench.append(make_frame(b"late", producer=LATE))
    await bench.log.trim(StreamId(TOPIC, 0), 1)
    await started_again_in_vain(bench, monkeypatch)
    await bench.reopen(crash=True)
    repeated = await bench.append(early)
    assert isinstance(repeated, Appended), repeated
    assert (repeated.base_offset, repeated.repeated) == (first.base_offset, True)


async def test_an_empty_file_counts_as_the_first_if_the_one_before_has_only_a_row(
    bench: Bench, make_frame: MakeFrame
) -> None:
    """A start died while it removed the file before; the snapshot lies beside this file."""
    early = make_frame(b"early", producer=EARLY)
    first = await bench.append(early)
    [before] = await bench.rows()
    await bench.roll()
    await bench.log.trim(StreamId(TOPIC, 0), 1)
    await bench.store.commit([Put(before)])
    await bench.reopen(crash=True)
    await bench.reopen(crash=True)
    assert [row.state for row in await bench.rows()] == ["active"]
    repeated = await bench.append(early)
    assert isinstance(repeated, Appended), repeated
    assert (repeated.base_offset, repeated.repeated) == (first.base_offset, True)


async def test_an_empty_file_stays_if_only_its_snapshot_knows_the_producers(
    bench: Bench, make_frame: MakeFrame
) -> None:
    """A kill in a roll left two files without a frame; the first was damaged afterwards."""
    early = make_frame(b"early", producer=EARLY)
    first = await bench.append(early)
    await bench.roll()
    await bench.log.trim(StreamId(TOPIC, 0), 1)
    [before] = await bench.rows()
    await bench.roll()
    await bench.crash()
    await bench.store.commit([Put(before)])
    (bench.directory / f"{TOPIC:08x}-{before.segment_id:016x}.seg").write_bytes(b"")
    await bench.open()
    await bench.reopen(crash=True)
    repeated = await bench.append(early)
    assert isinstance(repeated, Appended), repeated
    assert (repeated.base_offset, repeated.repeated) == (first.base_offset, True)

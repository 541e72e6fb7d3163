"""Holds: what retention leaves for those who still have to read it."""

from typing import Any

import pytest

from dss_core.errors import OffsetOutOfRange
from dss_core.ids import StreamId

Bench = Any
TOPIC = 7
STREAM = StreamId(TOPIC, 0)
JOB = 5


async def three_segments(bench: Bench) -> None:
    for number in range(3):
        bench.now_us = 1_000_000 * (number + 1)
        await bench.put(b"a%d" % number)
        await bench.roll()


async def enforce(bench: Bench) -> int:
    went: int = await bench.log.enforce_retention(TOPIC, 1, None, 100_000_000)
    return went


async def hold(bench: Bench, start: int, end: int) -> None:
    await bench.store.commit(await bench.log.hold(JOB, {STREAM: (start, end)}))


async def release(bench: Bench) -> None:
    await bench.store.commit(bench.log.release(JOB))
    bench.log.released(JOB)


async def test_retention_takes_what_lies_before_a_hold_and_nothing_behind(bench: Bench) -> None:
    await three_segments(bench)
    await hold(bench, 1, 2)
    assert await enforce(bench) == 1
    assert list(await bench.payloads()) == [1, 2]
    await release(bench)
    assert await enforce(bench) == 2


async def test_a_hold_outlives_a_restart_and_its_release_too(bench: Bench) -> None:
    await three_segments(bench)
    await hold(bench, 0, 1)
    await bench.reopen(crash=True)
    assert await enforce(bench) == 0
    assert bench.log.holders(TOPIC) == {JOB}
    await release(bench)
    await bench.reopen(crash=True)
    assert bench.log.holders(TOPIC) == set()
    assert await enforce(bench) == 3


async def test_a_hold_that_was_never_committed_is_gone_after_a_restart(bench: Bench) -> None:
    await three_segments(bench)
    await bench.log.hold(JOB, {STREAM: (0, 1)})
    assert await enforce(bench) == 0
    await bench.reopen(crash=True)
    assert await enforce(bench) == 3


async def test_a_trim_stops_at_a_hold(bench: Bench) -> None:
    await three_segments(bench)
    await hold(bench, 1, 3)
    await bench.log.trim(STREAM, 3)
    assert bench.log.span(STREAM) == (1, 3)


@pytest.mark.parametrize("wanted", [(0, 3), (1, 4)])
async def test_what_is_gone_or_not_there_yet_is_not_held(
    bench: Bench, wanted: tuple[int, int]
) -> None:
    await three_segments(bench)
    await bench.log.trim(STREAM, 1)
    with pytest.raises(OffsetOutOfRange):
        await bench.log.hold(JOB, {StreamId(TOPIC, 1): (0, 0), STREAM: wanted})
    assert bench.log.holders(TOPIC) == set()


async def test_what_expires_and_what_of_it_is_held_is_told_apart(bench: Bench) -> None:
    await three_segments(bench)
    await hold(bench, 1, 2)
    expiring = await bench.log.expiring(TOPIC, 1, None, 100_000_000)
    assert expiring.ranges == {STREAM: (0, 1)}
    assert expiring.bytes > 0
    assert expiring.held_bytes > expiring.bytes

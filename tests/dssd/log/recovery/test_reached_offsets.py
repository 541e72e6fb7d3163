"""A log that ends below what groups have read: no offset that they were given is assigned again."""

import os
from typing import Any

from dss_core.ids import StreamId
from dssd.log.recovery.reached_offsets import ShortStream
from dssd.log.segment.file import HEADER_BYTES

TOPIC = 7
Bench = Any


async def test_a_stream_whose_file_is_gone_goes_on_behind_what_was_read(bench: Bench) -> None:
    await bench.put(b"read", b"read too", b"not read")
    bench.reached = {TOPIC: {0: 2}}
    await bench.crash()
    bench.segments()[-1].unlink()
    await bench.open()
    assert bench.log.short_streams() == [ShortStream(TOPIC, 0, 0, 2)]
    assert (await bench.put(b"new")).base_offset == 2
    assert await bench.payloads() == {2: b"new"}


async def test_a_stream_that_lost_its_end_goes_on_in_a_new_file(bench: Bench) -> None:
    await bench.put(b"kept")
    size = bench.segments()[-1].stat().st_size
    await bench.put(b"read, and gone")
    await bench.put(b"of another stream, not read", partition=1)
    bench.reached = {TOPIC: {0: 2}}
    await bench.crash()
    os.truncate(bench.segments()[-1], size)
    await bench.open()
    assert (await bench.put(b"new")).base_offset == 2
    assert await bench.payloads() == {0: b"kept", 2: b"new"}
    assert await bench.damaged() == [(1, 2)], "told, and not passed over in silence"
    await bench.reopen(crash=True)
    assert bench.log.short_streams() == []
    assert await bench.payloads() == {0: b"kept", 2: b"new"}


async def test_the_next_start_finds_the_same_where_nothing_was_stored_since(bench: Bench) -> None:
    await bench.put(b"read", b"read too")
    bench.reached = {TOPIC: {0: 2}}
    await bench.crash()
    os.truncate(bench.segments()[-1], HEADER_BYTES)
    await bench.open()
    await bench.reopen()
    await bench.reopen(crash=True)
    assert bench.log.short_streams() == [ShortStream(TOPIC, 0, 0, 2)]
    assert bench.log.bounds(StreamId(TOPIC, 0)).end == 2


async def test_what_groups_have_read_of_a_log_that_is_whole_changes_nothing(bench: Bench) -> None:
    await bench.put(b"one", b"two")
    bench.reached = {TOPIC: {0: 2, 1: 0, 99: 5}, 8: {0: 1_000}}
    await bench.reopen(crash=True)
    assert bench.log.short_streams() == []
    assert (await bench.put(b"three")).base_offset == 2


async def test_a_start_behind_a_clean_stop_does_not_ask(bench: Bench) -> None:
    await bench.put(b"one")
    asked = bench.asked
    await bench.reopen()
    assert bench.asked == asked
    await bench.reopen(crash=True)
    assert bench.asked == asked + 1


async def test_a_start_behind_a_clean_stop_asks_where_a_file_is_damaged(bench: Bench) -> None:
    await bench.put(b"read", b"read too")
    await bench.log.close()
    asked = bench.asked
    bench.segments()[-1].unlink()
    bench.reached = {TOPIC: {0: 2}}
    await bench.open()
    assert bench.asked == asked + 1
    assert (await bench.put(b"new")).base_offset >= 2


async def test_a_sealed_stream_does_not_grow(bench: Bench) -> None:
    await bench.put(b"one", b"two")
    await bench.seal()
    bench.reached = {TOPIC: {0: 2}}
    await bench.crash()
    bench.segments()[-1].unlink()
    await bench.open()
    assert bench.log.bounds(StreamId(TOPIC, 0)).end == 2

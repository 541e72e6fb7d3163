"""What a plain reading makes of the daemon's answers."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dss_api.v1 import log_pb2, types_pb2
from dss_client.reader import Reader
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import StreamDamaged
from dss_core.frame import HEADER_BYTES, stamped


class Answers:
    """A call whose answers are given."""

    def __init__(self, replies: Sequence[log_pb2.ReadReply]) -> None:
        self._replies = iter(replies)

    def next(self) -> log_pb2.ReadReply | None:
        """None at the end."""
        return next(self._replies, None)

    def cancel(self) -> None:
        """It is over."""


def reader(
    *replies: log_pb2.ReadReply, on_damage: Callable[[StreamDamaged], None] | None = None
) -> Reader:
    log = SimpleNamespace(Read=lambda request: Answers(replies))

    async def read_or_end(call: Answers) -> log_pb2.ReadReply | None:
        return call.next()

    connection = SimpleNamespace(
        log=log, read_or_end=read_or_end, endpoint=SimpleNamespace(text="unix:/d")
    )
    return Reader(cast("Any", connection), log_pb2.ReadRequest(), on_damage)


def stored(payload: bytes, offset: int) -> bytes:
    columns = Columns([payload], None, "t", None, 1)
    frame = build_frame(columns, partition=0, producer_id=bytes(16), sequence=0)
    head = stamped(frame, base_offset=offset, append_time_us=1, topic_epoch=1, storage_topic_id=1)
    return head + frame[HEADER_BYTES:]


async def fill(found: list[bytes], reading: Reader) -> None:
    async for record in reading:
        found.append(record.payload)  # noqa: PERF401 - what came before an error is kept


async def test_names_of_streams_may_come_in_several_answers() -> None:
    reading = reader(
        log_pb2.ReadReply(streams=["t/0/0", "t/0/1"]),
        log_pb2.ReadReply(streams=["t/0/2"]),
        log_pb2.ReadReply(stream="t/0/2", frames=stored(b"x", 0)),
    )
    assert [record.payload async for record in reading] == [b"x"]
    assert reading.streams == ("t/0/0", "t/0/1", "t/0/2")


async def test_damage_is_told_after_all_that_could_be_read() -> None:
    reading = reader(
        log_pb2.ReadReply(streams=["t/0/0"]),
        log_pb2.ReadReply(stream="t/0/0", frames=stored(b"0", 0)),
        log_pb2.ReadReply(
            stream="t/0/0",
            frames=stored(b"3", 3),
            damaged=[types_pb2.Range(start=1, end=3)],
        ),
        log_pb2.ReadReply(stream="t/0/0", damaged=[types_pb2.Range(start=4, end=5)]),
    )
    found: list[bytes] = []
    with pytest.raises(StreamDamaged) as told:
        await fill(found, reading)
    assert found == [b"0", b"3"]
    assert told.value.fields == {"stream": "t/0/0", "offset": "1", "last": "2"}


async def test_damage_is_told_at_once_and_each_range_of_it_once() -> None:
    told: list[tuple[str, str]] = []
    reading = reader(
        log_pb2.ReadReply(streams=["t/0/0"]),
        log_pb2.ReadReply(stream="t/0/0", frames=stored(b"0", 0)),
        log_pb2.ReadReply(stream="t/0/0", damaged=[types_pb2.Range(start=1, end=3)]),
        # As after a lost connection, where what was read before comes once more.
        log_pb2.ReadReply(
            stream="t/0/0",
            frames=stored(b"5", 5),
            damaged=[types_pb2.Range(start=2, end=5)],
        ),
        on_damage=lambda damage: told.append((damage.fields["offset"], damage.fields["last"])),
    )
    records = aiter(reading)
    assert (await anext(records)).payload == b"0"
    assert told == []
    assert (await anext(records)).payload == b"5"
    assert told == [("1", "2"), ("3", "4")]
    with pytest.raises(StreamDamaged):
        await anext(records)


async def test_damage_that_nobody_asks_for_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    reading = reader(
        log_pb2.ReadReply(stream="t/0/0", damaged=[types_pb2.Range(start=1, end=3)]),
    )
    with pytest.raises(StreamDamaged):
        await fill([], reading)
    said = "DSS4001: Stream t/0/0 is damaged: offsets 1 to 2 cannot be read."
    assert caplog.messages == [said]

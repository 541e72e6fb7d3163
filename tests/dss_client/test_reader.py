"""What a plain reading makes of the daemon's answers."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dss_api.v1 import log_pb2, types_pb2
from dss_client._connection import ConnectionLostError
from dss_client.reader import Reader, read_request
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import DssError, LogUnreadable, OutcomeUnknown, StreamDamaged
from dss_core.frame import HEADER_BYTES, stamped


class Answers:
    """A call whose answers are given."""

    def __init__(self, replies: Sequence[log_pb2.ReadReply | DssError]) -> None:
        self._replies = iter(replies)

    def next(self) -> log_pb2.ReadReply | DssError | None:
        """None at the end."""
        return next(self._replies, None)

    def cancel(self) -> None:
        """It is over."""


def reader(
    *replies: log_pb2.ReadReply,
    on_damage: Callable[[StreamDamaged], None] | None = None,
    on_lost: Callable[[str, int, int], None] | None = None,
) -> Reader:
    log = SimpleNamespace(Read=lambda request: Answers(replies))

    async def read_or_end(call: Answers) -> log_pb2.ReadReply | DssError | None:
        return call.next()

    connection = SimpleNamespace(
        log=log, read_or_end=read_or_end, endpoint=SimpleNamespace(text="unix:/d")
    )
    return Reader(cast("Any", connection), log_pb2.ReadRequest(), on_damage, on_lost)


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


async def test_what_was_hidden_at_the_end_of_an_answer_is_still_to_come() -> None:
    came_behind_the_end = types_pb2.Range(start=1, end=2)
    reading = reader(
        log_pb2.ReadReply(
            stream="t/0/0",
            frames=stored(b"gap", 0) + stored(b"tail", 1),
            mask=[came_behind_the_end],
        ),
        log_pb2.ReadReply(stream="t/0/0", frames=stored(b"tail", 1)),
    )
    assert [record.payload async for record in reading] == [b"gap", b"tail"]


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


async def test_offsets_without_a_record_are_told_and_no_error() -> None:
    told: list[tuple[str, int, int]] = []
    reading = reader(
        log_pb2.ReadReply(stream="t/0/0", frames=stored(b"0", 0)),
        log_pb2.ReadReply(stream="t/0/0", lost=[types_pb2.Range(start=1, end=9)]),
        log_pb2.ReadReply(stream="t/0/0", frames=stored(b"9", 9)),
        on_lost=lambda *lost: told.append(lost),
    )
    assert [record.payload async for record in reading] == [b"0", b"9"]
    assert told == [("t/0/0", 1, 9)]


async def test_lost_offsets_are_told_once_also_where_they_come_again_after_a_reconnect() -> None:
    told: list[tuple[str, int, int]] = []
    reading = reader(
        log_pb2.ReadReply(stream="t/0/0", frames=stored(b"0", 0)),
        log_pb2.ReadReply(stream="t/0/0", lost=[types_pb2.Range(start=1, end=5)]),
        # As after a lost connection.
        log_pb2.ReadReply(stream="t/0/0", lost=[types_pb2.Range(start=1, end=9)]),
        log_pb2.ReadReply(stream="t/0/0", frames=stored(b"9", 9)),
        on_lost=lambda *lost: told.append(lost),
    )
    assert [record.payload async for record in reading] == [b"0", b"9"]
    assert told == [("t/0/0", 1, 5), ("t/0/0", 5, 9)]


async def test_damage_that_nobody_asks_for_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    reading = reader(
        log_pb2.ReadReply(stream="t/0/0", damaged=[types_pb2.Range(start=1, end=3)]),
    )
    with pytest.raises(StreamDamaged):
        await fill([], reading)
    said = "DSS4001: Stream t/0/0 is damaged: offsets 1 to 2 cannot be read."
    assert caplog.messages == [said]


class Tail(asyncio.Queue[log_pb2.ReadReply]):
    """A call whose answers a test gives as it goes."""

    def cancel(self) -> None:
        """It is over."""


class LostSector:
    """A daemon whose first call is lost; then the gap of one stream cannot be read at first."""

    def __init__(self, failures: int, starts: Sequence[int]) -> None:
        self.endpoint = SimpleNamespace(text="unix:/d")
        self.log = SimpleNamespace(Read=self._read)
        self.tail = Tail()
        self._starts = starts
        self.tries = 0
        self._failures = failures
        self._began = False

    async def read_or_end(self, call: Answers | Tail) -> log_pb2.ReadReply | None:
        if isinstance(call, Tail):
            return await call.get()
        found = call.next()
        if isinstance(found, DssError):
            raise ConnectionLostError(found)
        return found

    def _read(self, request: log_pb2.ReadRequest) -> Answers | Tail:
        if request.stream:
            gap = self._gap(request.stream)
            return Answers(gap[:1] if request.HasField("end_offset") else gap)
        names = log_pb2.ReadReply(streams=["t/0/0", "t/0/1"])
        if self._began:
            names.starts.extend(self._starts)
            self.tail.put_nowait(names)
            return self.tail
        self._began = True
        return Answers([names, answer(0, b"a", 0), answer(1, b"b", 0), OutcomeUnknown()])

    def _gap(self, stream: str) -> Sequence[log_pb2.ReadReply | DssError]:
        if stream == "t/0/1":
            return [answer(1, b"c", 1)]
        self.tries += 1
        if self.tries <= self._failures:
            return [LogUnreadable(path="x.seg", reason="Input/output error")]
        return [answer(0, b"lost", 1), answer(0, b"behind", 2)]


def answer(partition: int, payload: bytes, offset: int) -> log_pb2.ReadReply:
    return log_pb2.ReadReply(stream=f"t/0/{partition}", frames=stored(payload, offset))


@pytest.mark.parametrize("starts", [(2, 2), ()], ids=["", "of an older daemon"])
async def test_a_stream_that_cannot_be_read_after_a_lost_connection_keeps_no_other_waiting(
    monkeypatch: pytest.MonkeyPatch, starts: Sequence[int]
) -> None:
    monkeypatch.setattr("dss_client.reader.READ_AGAIN_S", 0.0)
    daemon = LostSector(5, starts)
    request = log_pb2.ReadRequest(follow=True)
    async with aclosing(aiter(Reader(cast("Any", daemon), request))) as records:
        assert [(await anext(records)).payload for _ in range(3)] == [b"a", b"b", b"c"]
        # What comes behind the gap waits for it, and comes once.
        for reply in (answer(0, b"behind", 2), answer(1, b"d", 2)):
            daemon.tail.put_nowait(reply)
        rest = [(await anext(records)).payload for _ in range(3)]
    assert rest in ([b"d", b"lost", b"behind"], [b"lost", b"behind", b"d"])
    assert daemon.tries == 6


def test_more_records_than_there_can_be_are_all_of_them() -> None:
    def asked(records: int | None) -> log_pb2.ReadRequest:
        return read_request(
            "a/#", start=None, end=None, follow=False, stream=None, records_max=records
        )

    assert asked(10**20).records_max == (1 << 64) - 1
    assert not asked(None).HasField("records_max")


async def test_a_storage_topic_comes_behind_the_old_one_after_a_lost_connection_too() -> None:
    names = partial(log_pb2.ReadReply, streams=["t/0/0", "t/0/1"])
    tail = (
        names(starts=[3, 0]),
        # All of it comes in the order of the tail.
        log_pb2.ReadReply(streams=["t/1/0"], starts=[0]),
        log_pb2.ReadReply(stream="t/0/0", frames=stored(b"3", 3)),
        log_pb2.ReadReply(stream="t/1/0", frames=stored(b"4", 0)),
    )
    lost = (names(starts=[1, 0]), log_pb2.ReadReply(stream="t/0/0", frames=stored(b"1", 1)))
    gap = (log_pb2.ReadReply(stream="t/0/0", frames=stored(b"2", 2)),)
    calls = [Answers([*lost, OutcomeUnknown()]), Answers(tail), Answers(gap)]
    asked: list[log_pb2.ReadRequest] = []

    def read(request: log_pb2.ReadRequest) -> Answers:
        asked.append(request)
        return calls.pop(0)

    async def read_or_end(call: Answers) -> log_pb2.ReadReply | None:
        reply = call.next()
        if isinstance(reply, DssError):
            raise ConnectionLostError(reply)
        return reply

    connection = SimpleNamespace(
        log=SimpleNamespace(Read=read),
        read_or_end=read_or_end,
        endpoint=SimpleNamespace(text="unix:/d"),
    )
    reading = Reader(cast("Any", connection), log_pb2.ReadRequest(filter="t/#", follow=True))
    assert [record.payload async for record in reading] == [b"1", b"2", b"3", b"4"]
    assert [(each.stream, each.start.offset, each.end_offset) for each in asked[2:]] == [
        ("t/0/0", 2, 3)
    ]

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, cast

import pytest

from dss_client import DeliveredRecord
from dss_client._keyed_runner import KeyedRunner
from dss_client.testing import until
from dss_core.errors import DssError, IllegalArgument, SessionTakenOver


class FakeRecord:
    """A record that notes what became of it."""

    grant_number = 1
    grant_over = False

    def __init__(self, offset: int, key: bytes | None) -> None:
        self.offset = offset
        self.key = key
        self.outcome = ""

    @property
    def acked(self) -> bool:
        return self.outcome == "ack"

    @property
    def refused(self) -> bool:
        return self.outcome == "nak"

    async def ack(self) -> None:
        assert not self.outcome
        self.outcome = "ack"

    async def nak(self) -> None:
        assert not self.outcome
        self.outcome = "nak"


async def coming(
    records: Sequence[FakeRecord], error: DssError | None = None
) -> AsyncIterator[FakeRecord]:
    for record in records:
        yield record
        await asyncio.sleep(0)
    if error is not None:
        raise error


async def run(
    handler: Callable[[FakeRecord], Awaitable[None]],
    records: AsyncIterator[FakeRecord],
    *,
    concurrency: int,
) -> KeyedRunner:
    """Fakes stand in for delivered records: no more of those is used than they have."""
    runner = KeyedRunner(cast(Any, handler), concurrency=concurrency)
    await runner.run(cast(Any, records))
    return runner


async def test_records_of_one_key_are_handled_in_order_and_never_at_once() -> None:
    chance = random.Random(3)
    records = [FakeRecord(n, chance.choice([b"a", b"b", b"c", None])) for n in range(300)]
    order: dict[bytes | None, list[int]] = defaultdict(list)
    busy: set[bytes | int] = set()
    most = 0

    async def handle(record: FakeRecord) -> None:
        nonlocal most
        assert record.key is None or record.key not in busy
        busy.add(record.key or record.offset)
        most = max(most, len(busy))
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        busy.remove(record.key or record.offset)
        order[record.key].append(record.offset)

    await run(handle, coming(records), concurrency=3)
    assert all(record.outcome == "ack" for record in records)
    assert most == 3
    for key in (b"a", b"b", b"c"):
        assert order[key] == sorted(order[key])


async def test_followers_of_a_refused_record_are_refused_until_it_was_handled() -> None:
    first, second, other = FakeRecord(1, b"a"), FakeRecord(2, b"a"), FakeRecord(3, b"b")
    again = [FakeRecord(1, b"a"), FakeRecord(2, b"a")]
    failed = []

    async def handle(record: FakeRecord) -> None:
        if record is first:
            failed.append(record)
            raise ValueError

    runner = await run(handle, coming([first, second, other, *again]), concurrency=2)
    assert [r.outcome for r in (first, second, other, *again)] == [
        "nak", "nak", "ack", "ack", "ack",
    ]  # fmt: skip
    assert runner._chains == {}


async def test_what_was_acked_before_the_handler_raised_holds_nobody_up() -> None:
    records = [FakeRecord(offset, b"a") for offset in range(3)]

    async def handle(record: FakeRecord) -> None:
        if record.offset == 1:
            await record.ack()
            raise ValueError

    runner = await run(handle, coming(records), concurrency=2)
    assert [record.outcome for record in records] == ["ack", "ack", "ack"]
    assert runner._chains == {}


async def test_a_refused_record_that_was_acked_after_all_holds_nobody_up() -> None:
    first, second = FakeRecord(1, b"a"), FakeRecord(2, b"a")

    async def handle(record: FakeRecord) -> None:
        if record is first:
            raise ValueError

    async def coming_later() -> AsyncIterator[FakeRecord]:
        yield first
        await until(lambda: first.refused)
        first.outcome = "ack"
        yield second

    await run(handle, coming_later(), concurrency=2)
    assert second.outcome == "ack"


async def test_what_the_handler_refused_itself_comes_again_before_its_followers() -> None:
    records = [FakeRecord(offset, b"a") for offset in range(3)]

    async def handle(record: FakeRecord) -> None:
        if record.offset == 0:
            await record.nak()
        if record.offset == 1:
            await record.nak()
            raise ValueError

    await run(handle, coming(records), concurrency=2)
    assert [record.outcome for record in records] == ["nak", "nak", "nak"]


async def test_a_handler_that_something_cancelled_is_refused_and_its_worker_goes_on() -> None:
    records = [FakeRecord(offset, b"a" if offset else None) for offset in range(3)]

    async def handle(record: FakeRecord) -> None:
        if record.offset == 0:
            gone = asyncio.get_running_loop().create_future()
            gone.cancel()
            await gone

    async with asyncio.timeout(5):
        await run(handle, coming(records), concurrency=1)
    assert [record.outcome for record in records] == ["nak", "ack", "ack"]


async def test_what_waits_for_its_turn_is_not_handled_once_its_stream_is_taken_back() -> None:
    records = [FakeRecord(offset, b"a" if offset < 3 else None) for offset in range(5)]
    handled = []

    async def handle(record: FakeRecord) -> None:
        handled.append(record.offset)
        for each in records:
            each.grant_over = True

    runner = await run(handle, coming(records), concurrency=1)
    assert handled == [0]
    assert [record.outcome for record in records] == ["ack", "", "", "", ""]
    assert runner._chains == {}


async def test_the_final_error_comes_after_what_was_being_handled() -> None:
    record = FakeRecord(1, b"a")

    async def handle(record: FakeRecord) -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    error = SessionTakenOver(client_id="me")
    with pytest.raises(SessionTakenOver):
        await run(handle, coming([record], error), concurrency=1)
    assert record.outcome == "ack"


def test_a_concurrency_below_one_is_refused() -> None:
    async def handle(record: DeliveredRecord) -> None:
        """Never called."""

    with pytest.raises(IllegalArgument):
        KeyedRunner(handle, concurrency=0)

import asyncio
import random

import pytest

from dss_client._acks import Acks, offset_ranges
from dss_client._grant import HeldGrant
from dss_client._handout import Handout
from dss_client.record import DeliveredRecord
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import GrantNotHeld
from dss_core.progress import Ranges, normalised


class Told:
    """Counts how often there was something to report."""

    def __init__(self) -> None:
        self.times = 0
        self.acks = Acks(self._again)

    def _again(self) -> None:
        self.times += 1


def records_of(grant: HeldGrant, count: int) -> list[DeliveredRecord]:
    columns = Columns(payloads=[b"p"] * count, keys=None, subjects="t", timestamps_us=0)
    frame = build_frame(columns, partition=0, producer_id=bytes(16), sequence=0)
    return list(Handout(grant, frame, (), redelivered=False, attempt=1).records())


def grant_told(touched: list[bool]) -> HeldGrant:
    return HeldGrant(
        1,
        subscription=1,
        stream="t/0/0",
        grant_epoch=1,
        floor=0,
        redelivered_below=0,
        touched=lambda _, urgent: touched.append(urgent),
    )


def acked_by(grant: HeldGrant) -> Ranges:
    report = grant.report(lambda waiters: 1)
    return () if report is None else report.acked


OFFSETS = pytest.mark.parametrize(
    ("offsets", "ranges"),
    [
        ([5], ((5, 6),)),
        ([3, 4, 5], ((3, 6),)),
        ([5, 3, 4], ((3, 6),)),
        ([1, 1, 3], ((1, 2), (3, 4))),
        ([9, 1, 2, 8], ((1, 3), (8, 10))),
        ([0, 1, 0, 1, 2], ((0, 3),)),
    ],
)


@OFFSETS
def test_offsets_become_ranges(offsets: list[int], ranges: Ranges) -> None:
    assert offset_ranges(offsets) == ranges


def test_any_offsets_become_the_ranges_that_hold_exactly_them() -> None:
    chance = random.Random(1)
    for _ in range(200):
        offsets = [chance.randrange(60) for _ in range(chance.randrange(1, 80))]
        assert offset_ranges(offsets) == normalised((o, o + 1) for o in offsets)


@OFFSETS
def test_what_is_left_is_taken_as_ranges_once(offsets: list[int], ranges: Ranges) -> None:
    acks = Told().acks
    for offset in offsets:
        acks.leave(offset)
    assert len(acks) == len(offsets)
    assert acks.take() == ranges
    assert (len(acks), acks.take()) == (0, ())


def test_any_that_are_left_one_by_one_or_together_are_taken_and_no_others() -> None:
    chance = random.Random(2)
    acks = Told().acks
    for _ in range(500):
        left: list[int] = []
        for _ in range(chance.randrange(1, 12)):
            start, count = chance.randrange(60), chance.randrange(1, 9)
            offsets = list(range(start, start + count))
            left += offsets
            if chance.random() < 0.3:
                acks.leave_all(offsets)
                continue
            for offset in offsets:
                acks.leave(offset)
        assert [each for each in range(-1, 80) if each in acks] == sorted(set(left))
        assert len(acks) == len(left)
        assert acks.take() == normalised((each, each + 1) for each in left)
        assert not any(each in acks for each in range(-1, 80))


@pytest.mark.parametrize("first", [7, 0])
def test_the_first_since_a_report_tells_that_there_is_something(first: int) -> None:
    told = Told()
    for times in (1, 2):
        told.acks.leave(first)
        told.acks.leave(first + 1)
        told.acks.leave(first + 5)
        told.acks.leave_all([first + 9])
        assert told.times == times
        told.acks.take()
    told.acks.leave_all([first])
    assert told.times == 3


def test_an_ack_is_done_by_its_call_and_may_be_awaited_at_any_time() -> None:
    async def main() -> None:
        touched: list[bool] = []
        grant = grant_told(touched)
        first, second, third, fourth = records_of(grant, 4)
        done = first.ack()
        assert touched == [False]
        assert acked_by(grant) == ((0, 1),)
        await done
        await done
        await asyncio.gather(second.ack(), fourth.ack())
        await asyncio.wait_for(third.ack(), 1)
        assert touched == [False, False]
        assert acked_by(grant) == ((1, 4),)

    asyncio.run(main())


def test_an_ack_that_is_to_be_durable_is_done_when_it_is_awaited() -> None:
    async def main() -> None:
        grant = grant_told([])
        (record,) = records_of(grant, 1)
        waits = record.ack(sync=True)
        assert acked_by(grant) == ()
        durable = asyncio.ensure_future(waits)
        await asyncio.sleep(0)
        assert acked_by(grant) == ((0, 1),)
        assert not durable.done()
        grant.end(GrantNotHeld(grant="t/0/0"))
        durable.cancel()

    asyncio.run(main())


def test_an_ack_behind_the_end_of_its_grant_is_counted_as_late() -> None:
    async def main() -> None:
        grant = grant_told([])
        records = records_of(grant, 4)
        await records[0].ack()
        assert acked_by(grant) == ((0, 1),)
        grant.end(GrantNotHeld(grant="t/0/0"))
        for record in (records[1], records[2], records[1]):
            await record.ack()
        assert grant.late == 3
        with pytest.raises(GrantNotHeld):
            await records[3].ack(sync=True)

    asyncio.run(main())


def test_acks_that_are_watched_are_told_at_once_and_count_if_the_watcher_says_so() -> None:
    touched: list[None] = []
    acks = Acks(lambda: touched.append(None))
    for offset in (1, 2, 3):
        acks.leave(offset)
    told: list[int] = []

    def watcher(offset: int) -> bool:
        told.append(offset)
        return offset != 6

    acks.watch(watcher)
    assert (2 in acks, 4 in acks, len(acks)) == (True, False, 3)
    for offset in (4, 6):
        acks.leave(offset)
    acks.leave_all([7, 6, 9])
    assert told == [4, 6, 7, 6, 9]
    assert (4 in acks, 6 in acks, 9 in acks, len(acks)) == (True, False, True, 6)
    acks.watch(None)
    acks.leave(10)
    assert acks.take() == ((1, 5), (7, 8), (9, 11))
    assert (len(acks), bool(touched)) == (0, True)

"""What operators are told of streams that cannot be read, are damaged, or stall."""

import pytest

from dss_core.errors import LogUnreadable
from dss_core.lane import DEAD, LaneEntry
from dssd.leaders.declarations import PASS, STALL
from dssd.leaders.delivery_trouble import DeliveryTrouble
from dssd.queues.lane import Failed, Failure
from dssd.store.rows import GroupRow
from support.heard_events import Heard

STREAM = "orders/0/3"


def group(on_damage: str = PASS) -> GroupRow:
    return GroupRow(
        7, "g", "orders/#", "shared", "now", None, 30_000, 0, 0, "borrow", on_damage=on_damage
    )


def test_a_read_that_fails_and_works_again_is_told_with_its_reason() -> None:
    heard = Heard()
    trouble = DeliveryTrouble(heard, "ann")
    trouble.readable(STREAM, group())
    trouble.unreadable(STREAM, group(), LogUnreadable(path="7.seg", reason="Input/output error"))
    trouble.readable(STREAM, group())
    trouble.readable(STREAM, group())
    assert heard.told() == [
        (
            "stream.unreadable",
            STREAM,
            "A read for group g@orders/# failed: Input/output error. Nothing is skipped.",
        ),
        ("stream.readable", STREAM, "Reads for group g@orders/# succeed again."),
    ]
    assert heard.events[0].fields["path"] == "7.seg"


async def test_each_damaged_range_is_told_before_it_may_be_passed_over() -> None:
    heard = Heard()
    trouble = DeliveryTrouble(heard, "ann")
    assert await trouble.damaged(STREAM, group(), ((4, 5), (10, 482)))
    assert [sentence for _, _, sentence in heard.told()] == [
        "Group g@orders/# goes on behind the damaged record at offset 4.",
        "Group g@orders/# goes on behind 472 damaged records, offsets 10 to 481.",
    ]
    assert heard.events[1].fields == {"group": "g@orders/#", "start": "10", "end": "482"}


async def test_damage_that_cannot_be_told_durably_may_not_be_passed_over() -> None:
    heard = Heard()
    heard.full = True
    assert not await DeliveryTrouble(heard, "ann").damaged(STREAM, group(), ((4, 5),))


@pytest.mark.parametrize("full", [False, True])
async def test_a_group_that_stalls_at_damage_passes_nothing_and_says_so(full: bool) -> None:
    heard = Heard()
    heard.full = full
    assert await DeliveryTrouble(heard, "ann").damaged(STREAM, group(STALL), ((4, 6),))
    assert heard.told() == [
        (
            "stream.damaged",
            STREAM,
            "Group g@orders/# stalls before 2 damaged records, offsets 4 to 5.",
        )
    ]


def test_records_that_are_dead_are_told_of_the_group() -> None:
    heard = Heard()
    lane = LaneEntry(0, 17, 0, 3, 17, 0, 5, cause="refused", error_type="OSError", client_id="ann")
    failed = Failed(0, 1, (Failure(DEAD, lane, b"c-9", "no route"),))
    DeliveryTrouble(heard, "ann").failed(STREAM, group(), failed)
    assert heard.told() == [
        (
            "record.dead",
            "g@orders/#",
            "The record orders/0/3@17 of key c-9 is dead after 5 attempts: OSError: no route",
        )
    ]

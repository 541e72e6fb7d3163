"""Each rule of the order of keys, broken by the shortest history that breaks it."""

import pytest

from dss_sim.groups.checker import Checker, Violation
from dss_sim.groups.history import (
    Acked,
    Declared,
    Disturbed,
    Event,
    HandedOut,
    Key,
    Nakked,
    OutOfTime,
    Passed,
    Queued,
    QueuesBorn,
    Stored,
)

MAIN, RETRY, DEAD = "t/0/0", "t/0/0~g.retry", "t/0/0~g.dead"
KEYS: tuple[Key, ...] = ("k", "l", "k", None, None)


def begun(*, ordered: bool = True, blocks: bool = True) -> list[Event]:
    return [
        Declared(0, "g", ((MAIN, 0),), 0, ordered),
        QueuesBorn(0, "g", MAIN, RETRY, DEAD, 2, ordered=ordered, blocks=blocks),
        Stored(0, MAIN, 0, 5, "p", 0, 0, "sync", KEYS),
        Disturbed(0, "by plan"),
    ]


def out(offset: int, stream: str = MAIN, *, key: Key = "k", epoch: int = 1) -> HandedOut:
    again = stream != MAIN or epoch > 1
    return HandedOut(10, "g", stream, offset, f"c{epoch}", epoch, 1, again, key)


def acked(offset: int, stream: str = MAIN) -> Acked:
    return Acked(20, "g", stream, offset, "c1", 1)


def refused(offset: int, *, rejected: bool = False) -> Nakked:
    return Nakked(20, "g", MAIN, offset, "c1", 0, "e", rejected)


def moved(offset: int, to: str, cause: str = "refused") -> Queued:
    error = "" if cause in ("follows", "ack wait") else "e"
    return Queued(30, "g", to, 0, MAIN, offset, 1, 0, cause, error, 1, "k")


def broken(*events: Event) -> str | None:
    judge = Checker()
    try:
        judge.take_all(events)
    except Violation as violation:
        return violation.invariant
    return None


def test_another_record_of_the_key_may_be_handed_out_once_the_first_is_acknowledged() -> None:
    assert broken(*begun(), out(0), out(1, key="l"), acked(0), out(2)) is None
    assert broken(*begun(), out(0), out(2)) == "K1"
    assert broken(*begun(ordered=False), out(0), out(2)) is None


def test_records_without_a_key_wait_for_nobody() -> None:
    assert broken(*begun(), out(3, key=None), out(4, key=None)) is None


def test_nothing_passes_an_earlier_record_of_its_key() -> None:
    assert broken(*begun(), out(2)) == "K2"
    assert broken(*begun(), out(0), refused(0), out(2)) == "K2"
    assert broken(*begun(), out(0), refused(0), moved(0, RETRY), out(2)) == "K2"
    done: list[Event] = [out(0), refused(0), moved(0, RETRY), out(0, RETRY), acked(0, RETRY)]
    assert broken(*begun(), *done, out(2)) is None


@pytest.mark.parametrize("blocks", [False, True])
def test_a_dead_letter_holds_up_its_key_where_the_group_says_so(blocks: bool) -> None:
    dead: list[Event] = [out(0), refused(0, rejected=True), moved(0, DEAD, "rejected")]
    assert broken(*begun(blocks=blocks), *dead, out(2)) == ("K2" if blocks else None)


def test_who_has_a_record_for_too_long_has_none_of_its_key_where_nothing_can_be_moved() -> None:
    batch: list[Event] = [out(at)._replace(batch=7) for at in (0, 2)]
    again, late = out(0)._replace(redelivered=True, attempt=2), OutOfTime(20, "g", MAIN, 0, "c1")
    assert broken(*begun(), *batch, again) == "K1"
    assert broken(*begun(), *batch, late, again) is None


def test_who_keeps_a_record_for_longer_than_its_ack_wait_may_be_handed_it_again_alone() -> None:
    late: list[Event] = [out(0), moved(0, RETRY, "ack wait"), out(0, RETRY)]
    assert broken(*begun(), *late) is None
    assert broken(*begun(), *late, out(2)) == "K1"
    assert broken(*begun(), *late, acked(0, RETRY), out(2)) is None


def test_what_cannot_be_read_any_more_is_in_nobody_s_way() -> None:
    assert broken(*begun(), out(0), Passed(20, "g", MAIN, 0, 1), out(2)) != "K1"


def test_a_member_that_lost_its_grant_may_still_hand_out_what_it_has() -> None:
    later = out(0, epoch=2)
    assert broken(*begun(), out(0), later) is None

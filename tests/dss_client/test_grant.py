import asyncio
import random
from collections.abc import Callable
from itertools import count

import pytest

from dss_client._grant import GrantReport, HeldGrant, offset_ranges
from dss_core.errors import GrantNotHeld
from dss_core.progress import normalised

Touched = Callable[[HeldGrant, bool], None]


def grant_of(touched: Touched = lambda grant, urgent: None) -> HeldGrant:
    return HeldGrant(
        1,
        subscription=1,
        stream="t/0/0",
        grant_epoch=1,
        floor=10,
        redelivered_below=0,
        touched=touched,
    )


def reported(grant: HeldGrant) -> GrantReport | None:
    tokens = count(1)
    return grant.report(lambda waiters: next(tokens))


def news_of(grant: HeldGrant) -> GrantReport:
    report = reported(grant)
    assert report is not None
    return report


@pytest.mark.parametrize(
    ("offsets", "ranges"),
    [
        ([5], ((5, 6),)),
        ([3, 4, 5], ((3, 6),)),
        ([5, 3, 4], ((3, 6),)),
        ([1, 1, 3], ((1, 2), (3, 4))),
        ([9, 1, 2, 8], ((1, 3), (8, 10))),
    ],
)
def test_offsets_become_ranges(offsets: list[int], ranges: tuple[tuple[int, int], ...]) -> None:
    assert offset_ranges(offsets) == ranges


def test_any_offsets_become_the_ranges_that_hold_exactly_them() -> None:
    chance = random.Random(1)
    for _ in range(200):
        offsets = [chance.randrange(60) for _ in range(chance.randrange(1, 80))]
        assert offset_ranges(offsets) == normalised((o, o + 1) for o in offsets)


def test_a_grant_without_news_reports_nothing() -> None:
    grant = grant_of()
    assert reported(grant) is None
    grant.frontier = 12
    assert news_of(grant).frontier == 12
    assert reported(grant) is None


def test_a_report_holds_everything_since_the_last_one() -> None:
    grant = grant_of()
    grant.acked.extend((11, 10))
    grant.ack(((12, 20),))
    grant.nak(((30, 31),), 0.25)
    grant.in_progress(((40, 41), (41, 42)))
    report = news_of(grant)
    assert report.acked == ((10, 20),)
    assert report.naks == ((30, 31, 250),)
    assert report.in_progress == ((40, 42),)
    assert report.token == 0
    assert reported(grant) is None


def test_a_grant_holds_what_was_handed_out_and_not_settled() -> None:
    grant = grant_of()
    assert not grant.holds_any
    grant.handed_out(((10, 12), (13, 16)))
    grant.ack(((10, 12), (14, 15)))
    grant.nak(((13, 14),), None)
    reported(grant)
    assert grant.holds_any
    grant.ack(((15, 16),))
    reported(grant)
    assert not grant.holds_any


def test_what_was_handed_out_twice_is_held_once() -> None:
    grant = grant_of()
    grant.handed_out(((10, 12),))
    grant.handed_out(((10, 11),))
    grant.ack(((10, 12),))
    reported(grant)
    assert not grant.holds_any


def test_work_on_what_comes_again_is_reported_as_begun() -> None:
    grant = grant_of()
    grant.handed_out(((10, 20),))
    assert news_of(grant).in_progress == ()
    grant.handed_out(((12, 14), (16, 17)))
    report = news_of(grant)
    assert report.in_progress == ((12, 14), (16, 17))
    assert report.frontier == 20


def test_work_that_is_done_is_not_reported_as_begun() -> None:
    grant = grant_of()
    grant.handed_out(((10, 20),))
    grant.handed_out(((12, 17),))
    grant.ack(((13, 15),))
    assert news_of(grant).in_progress == ((12, 13), (15, 17))


def test_an_offset_stays_acked_before_and_after_it_is_reported() -> None:
    grant = grant_of()
    grant.handed_out(((10, 14),))
    grant.acked.append(11)
    grant.ack(((12, 13),))
    for _ in range(2):
        assert [offset for offset in range(10, 14) if grant.has_acked(offset)] == [11, 12]
        reported(grant)


def test_an_offset_stays_refused_until_it_comes_again_or_is_acked() -> None:
    grant = grant_of()
    grant.handed_out(((10, 14),))
    grant.nak(((10, 13),), None)
    for _ in range(2):
        assert [offset for offset in range(10, 14) if grant.has_refused(offset)] == [10, 11, 12]
        assert not any(grant.has_acked(offset) for offset in range(10, 14))
        reported(grant)
    grant.handed_out(((10, 11),))
    grant.acked.append(12)
    assert [offset for offset in range(10, 14) if grant.has_refused(offset)] == [11]
    reported(grant)
    assert [offset for offset in range(10, 14) if grant.has_refused(offset)] == [11]
    assert grant.has_acked(12)


def test_a_report_of_many_ranges_goes_in_pieces_and_the_last_has_the_token() -> None:
    acked = tuple((at, at + 1) for at in range(10, 20, 2))
    naks = tuple((at, at + 1, None) for at in range(11, 15, 2))
    report = GrantReport(1, acked, naks, ((30, 31),), 40, 7)
    assert report.pieces(8) == [report]
    pieces = report.pieces(3)
    assert [(p.acked, p.naks, p.in_progress, p.token) for p in pieces] == [
        (acked[:3], (), (), 0),
        (acked[3:], (), (), 0),
        ((), (), ((30, 31),), 0),
        ((), naks, (), 0),
        ((), (), (), 7),
    ]
    assert all((piece.grant, piece.frontier) == (1, 40) for piece in pieces)


async def test_who_waits_for_an_ack_gets_a_token_or_the_end_of_the_grant() -> None:
    urgent = []
    grant = grant_of(lambda grant, is_urgent: urgent.append(is_urgent))
    waiting = asyncio.ensure_future(grant.settled())
    await asyncio.sleep(0)
    assert urgent == [True]
    grant.end(GrantNotHeld(grant="t/0/0"))
    with pytest.raises(GrantNotHeld):
        await waiting
    with pytest.raises(GrantNotHeld):
        await grant.settled()


def test_what_comes_after_the_end_is_dropped_and_counted() -> None:
    touches = []
    grant = grant_of(lambda grant, urgent: touches.append(grant))
    grant.end(GrantNotHeld(grant="t/0/0"))
    grant.ack(((1, 4),))
    grant.nak(((4, 5),), None)
    grant.touch()
    assert grant.late == 4
    assert touches == []

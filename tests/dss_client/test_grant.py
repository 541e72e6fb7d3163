import asyncio
import random
from collections.abc import Callable
from itertools import count
from typing import cast

import pytest

from dss_api.v1 import sessions_pb2
from dss_client._failure import Failure
from dss_client._grant import HeldGrant
from dss_client._grant_report import GrantReport, Nak
from dss_client._reports_on_wire import settle_of
from dss_core.errors import GrantNotHeld, IllegalArgument

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


def test_a_grant_without_news_reports_nothing() -> None:
    grant = grant_of()
    assert reported(grant) is None
    grant.frontier = 12
    assert news_of(grant).frontier == 12
    assert reported(grant) is None


def test_refusals_that_follow_each_other_for_the_same_time_are_reported_as_one() -> None:
    grant = grant_of()
    for at in (0, 1, 2, 4, 5):
        grant.nak(((at, at + 1),), 0)
    grant.nak(((6, 7),), None)
    grant.nak(((7, 9),), None)
    grant.nak(((8, 9),), None)
    assert news_of(grant).naks == (Nak(0, 3, 0), Nak(4, 6, 0), Nak(6, 9, None), Nak(8, 9, None))


def test_a_refusal_that_was_not_reported_before_its_record_was_handed_out_again_is_not() -> None:
    grant = grant_of()
    grant.nak(((0, 3),), 0)
    grant.nak(((4, 6),), 0)
    grant.hand_out(1)
    grant.handed_out(((4, 5),))
    assert news_of(grant).naks == (Nak(0, 1, 0), Nak(2, 3, 0), Nak(5, 6, 0))


def test_a_nak_whose_delay_is_not_allowed_is_refused_and_leaves_the_rest_as_it_is() -> None:
    grant = grant_of()
    grant.ack(((0, 2),))
    for delay in (-1, 86_401, float("nan"), float("inf"), True, "2s"):
        with pytest.raises(IllegalArgument, match="delay"):
            grant.nak(((2, 3),), cast("float", delay))
    report = news_of(grant)
    assert (report.acked, report.naks) == (((0, 2),), ())


def test_a_nak_that_does_not_fit_the_wire_goes_without_what_does_not_fit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    naks = (Nak(2, 3, -1_000, Failure("no", rejects=True)), Nak(3, 4, 250))
    told = settle_of(GrantReport(1, ((0, 2),), (), (), naks, 4, 7))
    assert [*told.naks] == [
        sessions_pb2.Nak(start=2, end=3, reject=True),
        sessions_pb2.Nak(start=3, end=4, delay_ms=250),
    ]
    assert ([(each.start, each.end) for each in told.acked], told.token) == ([(0, 2)], 7)
    assert "goes without delay and error" in caplog.text


def test_a_report_holds_everything_since_the_last_one() -> None:
    grant = grant_of()
    grant.acks.leave_all((11, 10))
    grant.ack(((12, 20),))
    grant.nak(((30, 31),), 0.25)
    grant.in_progress(((40, 41), (41, 42)))
    report = news_of(grant)
    assert report.acked == ((10, 20),)
    assert report.naks == (Nak(30, 31, 250),)
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


def test_what_is_handed_out_again_is_reported_by_name() -> None:
    grant = grant_of()
    grant.handed_out(((10, 20),))
    assert news_of(grant).handed_out == ()
    grant.handed_out(((12, 14), (16, 17)))
    report = news_of(grant)
    assert report.handed_out == ((12, 14), (16, 17))
    assert report.in_progress == ()
    assert report.frontier == 20


def test_what_is_handed_out_again_and_acked_is_reported_as_acked_only() -> None:
    grant = grant_of()
    grant.handed_out(((10, 20),))
    grant.handed_out(((12, 17),))
    grant.in_progress(((12, 14),))
    grant.ack(((13, 15),))
    report = news_of(grant)
    assert report.handed_out == ((12, 13), (15, 17))
    assert report.in_progress == ((12, 13),)


def test_the_frontier_stays_before_what_was_taken_and_not_handed_out() -> None:
    grant = grant_of()
    grant.take(((10, 14), (16, 20)))
    assert reported(grant) is None
    for offset in (10, 12, 17):
        grant.hand_out(offset)
    report = news_of(grant)
    assert (report.frontier, report.handed_out) == (11, ((12, 13), (17, 18)))
    grant.hand_out(11)
    report = news_of(grant)
    assert (report.frontier, report.handed_out) == (13, ())
    grant.hand_out(13)
    grant.hand_out(16)
    assert (news_of(grant).frontier, grant.seen_below()) == (18, 18)
    assert reported(grant) is None
    assert grant.held_records == 6


def test_the_frontier_does_not_pass_what_is_not_for_the_user_before_the_next_hand_out() -> None:
    grant = grant_of()
    grant.take(((10, 12), (15, 16)))
    grant.hand_out(10)
    grant.hand_out(11)
    assert news_of(grant).frontier == 12
    grant.hand_out(15)
    assert news_of(grant).frontier == 16


def test_what_comes_again_does_not_keep_the_frontier_back() -> None:
    grant = grant_of()
    grant.handed_out(((10, 20),))
    grant.take(((12, 13),))
    grant.take(((20, 22),))
    assert news_of(grant).frontier == 20
    grant.hand_out(20)
    report = news_of(grant)
    assert (report.frontier, report.handed_out) == (21, ())
    grant.hand_out(12)
    assert news_of(grant).handed_out == ((12, 13),)


def test_records_handed_out_past_what_a_run_holds_are_reported_by_name() -> None:
    grant = grant_of()
    grant.take(((10, 12),))
    grant.handed_out(((12, 20),))
    report = news_of(grant)
    assert (report.frontier, report.handed_out) == (10, ((12, 20),))
    grant.handed_out(((11, 15),))
    report = news_of(grant)
    assert (report.frontier, report.handed_out) == (10, ((11, 15),))
    grant.hand_out(10)
    report = news_of(grant)
    assert (report.frontier, report.handed_out) == (20, ())


def test_hand_outs_in_any_order_are_reported_exactly_once() -> None:
    chance = random.Random(2)
    for _ in range(100):
        grant = grant_of()
        grant.take(((10, 40),))
        order = list(range(10, 40))
        chance.shuffle(order)
        told: set[int] = set()
        frontier = 10
        while order:
            for _ in range(chance.randrange(1, 8)):
                if order:
                    grant.hand_out(order.pop())
            report = news_of(grant)
            named = {at for low, high in report.handed_out for at in range(low, high)}
            assert not named & told
            assert all(at >= report.frontier for at in named)
            told |= named | set(range(frontier, report.frontier))
            frontier = report.frontier
            assert told == set(range(10, 40)) - set(order)


def test_what_was_taken_and_not_handed_out_is_not_held() -> None:
    grant = grant_of()
    grant.take(((10, 20),))
    assert not grant.holds_any
    grant.hand_out(15)
    assert grant.holds_any
    assert not grant.has_acked(15)
    grant.acks.leave(15)
    news_of(grant)
    assert not grant.holds_any
    assert grant.has_acked(15)


def test_what_comes_again_is_known_as_acked_only_if_it_was_unsettled_as_it_came() -> None:
    def acked_meanwhile() -> list[int]:
        return [offset for offset in range(10, 14) if grant.acked_meanwhile(offset)]

    grant = grant_of()
    grant.take(((10, 14),))
    for offset in (10, 11, 13):
        grant.hand_out(offset)
    grant.nak(((10, 11),), 0)
    news_of(grant)
    came = grant.unsettled()
    grant.ack(((10, 12),))
    grant.take(((10, 14),), came)
    # 12 has waited since before and was never handed out, and 13 is not acknowledged.
    assert acked_meanwhile() == [10, 11]
    news_of(grant)
    assert acked_meanwhile() == [10, 11]
    grant.hand_out(11)
    assert acked_meanwhile() == [10]


def test_who_waits_for_a_refused_record_is_told_when_it_is_acked_after_all() -> None:
    grant = grant_of()
    told: list[bool] = []
    grant.refused_acked = lambda: told.append(grant.has_refused(11))
    grant.handed_out(((10, 14),))
    grant.nak(((11, 12),), None)
    grant.acks.leave(10)
    news_of(grant)
    assert told == []
    grant.acks.leave(11)
    news_of(grant)
    assert told == [False]


def test_an_offset_stays_acked_before_and_after_it_is_reported() -> None:
    grant = grant_of()
    grant.handed_out(((10, 14),))
    grant.acks.leave(11)
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
    grant.acks.leave(12)
    assert [offset for offset in range(10, 14) if grant.has_refused(offset)] == [11]
    reported(grant)
    assert [offset for offset in range(10, 14) if grant.has_refused(offset)] == [11]
    assert grant.has_acked(12)


def test_a_report_of_many_ranges_goes_in_pieces_and_the_last_has_the_token() -> None:
    acked = tuple((at, at + 1) for at in range(10, 20, 2))
    naks = tuple(Nak(at, at + 1, None) for at in range(11, 15, 2))
    report = GrantReport(1, acked, ((30, 31),), ((50, 51),), naks, 40, 7)
    assert report.pieces(9) == [report]
    pieces = report.pieces(3)
    assert [(p.acked, p.in_progress, p.handed_out, p.naks, p.token) for p in pieces] == [
        (acked[:3], (), (), (), 0),
        (acked[3:], (), (), (), 0),
        ((), ((30, 31),), (), (), 0),
        ((), (), ((50, 51),), (), 0),
        ((), (), (), naks, 0),
        ((), (), (), (), 7),
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


def test_acks_that_follow_each_other_are_remembered_as_one_range_until_the_grant_is_over() -> None:
    grant = grant_of()
    assert [grant.keep_acked(each) for each in ((10, 12), (12, 20), (22, 23))] == [
        True,
        False,
        True,
    ]
    assert grant.acked_before(((8, 30),)) == ((10, 20), (22, 23))
    assert grant.acked_before(((20, 22), (23, 30))) == ()
    grant.forget_oldest_acked()
    assert grant.acked_before(((8, 30),)) == ((22, 23),)
    grant.end(GrantNotHeld(grant="t/0/0"))
    assert grant.acked_before(((8, 30),)) == ()

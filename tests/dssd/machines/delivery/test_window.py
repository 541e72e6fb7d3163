"""Inputs and effects of the delivery window, without a loop or a log."""

import pytest

from dss_core.ids import StreamId
from dss_core.limits import CREDIT_RECORDS
from dss_core.progress import Progress, total
from dssd.limits import ISOLATE_AFTER_DOUBTS
from dssd.machines.attempts import Attempts, Due
from dssd.machines.delivery.events import (
    AnswerSettled,
    ChunkRead,
    Closing,
    Deliver,
    Draining,
    Dropped,
    Edited,
    Grown,
    Installed,
    Left,
    Nak,
    Paused,
    Read,
    RefuseGrant,
    RefuseRange,
    Report,
    Resumed,
    RevokeBegun,
    RevokeFinished,
    Saved,
    SendRevoke,
    Settle,
    Settles,
    ShowStalled,
    Suspended,
    TellGone,
    Unpaused,
    Unwanted,
    pieces_of,
)
from dssd.machines.delivery.pending_reports import REPORT_INTERVAL_MS
from dssd.machines.delivery.retry import backoff_ms
from dssd.machines.delivery.window import DeliveryWindow
from dssd.machines.fate import Counts, Fate
from dssd.machines.messages import GrantedStream, Stall, StreamReport
from support.played_window import ACK_WAIT_MS, Client, Stream, cut, offsets

ACKED_TWO = Fate(counts=Counts(acked=2))


def test_new_records_are_sent_in_order_up_to_the_credit() -> None:
    client = Client(records=30)
    client.install(1, Stream([10, 10, 10, 10]))
    assert client.take() == [(((0, 30),), False, 1)]
    client.feed(Settle(1, ((0, 10),), frontier=10))
    assert client.take() == [(((30, 40),), False, 1)]


def test_a_frame_goes_whole_while_any_credit_is_left() -> None:
    client = Client(records=25)
    client.install(1, Stream([10, 10, 10, 10]))
    client.tick(10)
    assert client.take() == [(((0, 20),), False, 1), (((20, 30),), False, 1)]
    client.feed(Settle(1, ((0, 5),), frontier=5))
    client.tick(10)
    assert client.take() == []
    client.feed(Settle(1, ((5, 6),), frontier=6))
    client.tick(10)
    assert client.take() == [(((30, 40),), False, 1)]


def test_a_frame_larger_than_the_credit_goes_and_what_follows_waits() -> None:
    client = Client(records=10)
    client.install(1, Stream([5, 50, 5]))
    assert client.take() == [(((0, 5),), False, 1), (((5, 55),), False, 1)]
    client.feed(Settle(1, ((0, 45),), frontier=45))
    client.tick(10)
    assert client.take() == []
    client.feed(Settle(1, ((45, 46),), frontier=46))
    client.tick(10)
    assert client.take() == [(((55, 60),), False, 1)]


@pytest.mark.parametrize("subscriptions", [(1, 1), (1, 2)])
def test_a_large_frame_is_not_starved_by_small_ones(subscriptions: tuple[int, int]) -> None:
    client = Client(records=1_000)
    client.install(1, Stream([100] * 300), subscription=subscriptions[0])
    client.install(2, Stream([950]), subscription=subscriptions[1])
    waiting: list[Deliver] = []
    for _ in range(40):
        waiting += client.delivered
        client.delivered.clear()
        client.tick(10)
        acked = offsets(waiting.pop(0))
        if any(each.grant == 2 for each in waiting):
            return
        client.feed(Settle(1, acked, frontier=acked[-1][1]))
    raise AssertionError("it was never sent")


def test_credit_in_bytes_bounds_what_is_out() -> None:
    client = Client(size=250)
    client.install(1, Stream([1, 1, 1, 1]))
    client.tick(10)
    assert client.take() == [(((0, 2),), False, 1), (((2, 3),), False, 1)]
    client.feed(Settle(1, ((0, 1),)))
    client.tick(10)
    assert client.take() == [(((3, 4),), False, 1)]


def test_streams_take_turns() -> None:
    client = Client(records=40)
    client.install(1, Stream([10] * 9))
    client.install(2, Stream([10] * 9))
    client.take()
    client.feed(Settle(1, ((0, 30),)))
    by_grant = {each.grant for each in client.delivered}
    assert 2 in by_grant


def test_a_subscription_takes_at_most_half_while_another_waits() -> None:
    client = Client(records=40)
    hungry, other = Stream([10] * 90), Stream([10] * 90)
    client.install(1, hungry, subscription=1)
    client.install(2, other, subscription=2)
    first = client.delivered[0]
    assert first.grant == 1
    client.take()
    settled = {1: 0, 2: 0}
    for _ in range(20):
        for grant in (1, 2):
            out = settled[grant] + 10
            client.feed(Settle(grant, ((settled[grant], out),)))
            settled[grant] = out
    per_grant = {1: 0, 2: 0}
    for delivery in client.delivered:
        per_grant[delivery.grant] += total(offsets(delivery))
    assert abs(per_grant[1] - per_grant[2]) <= 40


def settle_all(client: Client, grant: int) -> int:
    """Settle what comes of one grant, until nothing more does; how many records that were."""
    count = 0
    while mine := [each for each in client.delivered if each.grant == grant]:
        client.delivered = [each for each in client.delivered if each.grant != grant]
        for delivery in mine:
            count += total(offsets(delivery))
            client.feed(Settle(grant, offsets(delivery), frontier=delivery.end))
        client.tick(10)
    return count


@pytest.mark.parametrize("first", [1, 2])
def test_a_subscription_that_nobody_takes_from_holds_up_no_other(first: int) -> None:
    client = Client(records=40)
    for grant in (first, 3 - first):
        client.install(grant, Stream([7] * 30), subscription=grant)
    assert settle_all(client, 2) == 210


def test_a_subscription_that_takes_all_while_it_is_alone_holds_up_no_other() -> None:
    client = Client(records=40)
    client.install(1, Stream([40, 40]), subscription=1)
    client.install(2, Stream([]), subscription=2)
    client.streams[2].append(100)
    client.feed(Grown(2))
    assert settle_all(client, 2) == 100


def test_chunks_that_may_not_be_sent_hold_no_place_that_another_subscription_can_use() -> None:
    client = Client(records=40)
    for grant in range(1, 9):
        client.install(grant, Stream([10] * 30), subscription=1)
    client.install(9, Stream([10] * 30), subscription=2)
    assert settle_all(client, 9) == 300
    for grant in (*range(1, 9),) * 30:
        settle_all(client, grant)
    client.tick(10)
    assert all(client.reports[grant].progress == Progress(300) for grant in range(1, 10))


def test_a_slow_subscription_goes_on_beside_a_fast_one() -> None:
    client = Client(records=40)
    slow, fast = Stream([10] * 30), Stream([10] * 300)
    client.install(1, slow, subscription=1)
    client.install(2, fast, subscription=2)
    for _ in range(30):
        settle_all(client, 2)
        if client.delivered:
            one = client.delivered.pop(0)
            client.feed(Settle(one.grant, offsets(one), frontier=one.end))
        client.tick(10)
    assert client.reports[2].progress == Progress(3_000)
    assert client.reports[1].progress == Progress(300)


@pytest.mark.parametrize("credit", [1, 4, 40])
@pytest.mark.parametrize("streams", [1, 8])
def test_a_refused_record_comes_again_though_all_others_are_kept(credit: int, streams: int) -> None:
    client = Client(records=credit)
    for grant in range(1, streams + 1):
        client.install(grant, Stream([1] * 100))
    out = {each.grant: each.end for each in client.delivered}
    client.take()
    client.feed(Settle(1, naks=(Nak(0, 1),), frontier=out[1]))
    client.take()
    client.tick(1_000)
    assert client.take()[-1] == (((0, 1),), True, 2)


def test_new_records_leave_room_for_refused_ones_that_rest() -> None:
    client = Client(records=80)
    client.install(1, Stream([40, 40, *[1] * 100]))
    assert sum(total(ranges) for ranges, _, _ in client.take()) == 80
    client.feed(Settle(1, naks=(Nak(0, 40),), frontier=80))
    assert sum(total(ranges) for ranges, _, _ in client.take()) == 30
    client.tick(1_000)
    assert client.take()[0] == (((0, 40),), True, 2)


def test_what_is_due_together_comes_together_without_the_frames_between() -> None:
    client = Client()
    stream = Stream([10] * 30)
    stream.per_read = 30
    client.install(1, stream)
    client.take()
    naks = tuple(Nak(at, at + 1) for at in (3, 4, 7, 55, 299))
    client.feed(Settle(1, ((10, 50),), naks, frontier=300))
    client.tick(1_000)
    [delivery] = client.delivered
    assert offsets(delivery) == ((3, 5), (7, 8), (55, 56), (299, 300))
    assert (delivery.attempt, len(delivery.frames)) == (2, 300)


def test_due_records_of_different_attempts_come_in_a_delivery_each() -> None:
    client = Client()
    client.install(1, Stream([10]))
    client.take()
    twice = tuple(Nak(at, at + 1, 0) for at in (2, 6))
    client.feed(Settle(1, naks=twice, frontier=10))
    assert client.take() == [(((2, 3), (6, 7)), True, 2)]
    client.feed(Settle(1, naks=tuple(Nak(at, at + 1, 500) for at in (1, 5))))
    again = tuple(Nak(at, at + 1, 500) for at in (2, 6))
    client.feed(Settle(1, naks=again, handed_out=((2, 3), (6, 7))))
    client.tick(500)
    assert client.take() == [(((1, 2), (5, 6)), True, 2), (((2, 3), (6, 7)), True, 3)]


def test_one_gap_does_not_narrow_what_is_sent_ahead() -> None:
    client = Client(records=8_000)
    client.install(1, Stream([100] * 200))
    client.take()
    client.feed(Settle(1, ((1, 4_000),), frontier=8_000))
    client.take()
    assert client.window.credit.out_records >= 8_000


def test_a_stream_at_its_end_waits_until_it_grows() -> None:
    client = Client()
    stream = Stream([])
    client.install(1, stream)
    assert client.take() == []
    stream.append(3)
    client.feed(Grown(1))
    assert client.take() == [(((0, 3),), False, 1)]


def test_growth_during_a_read_that_finds_nothing_is_not_missed() -> None:
    window = DeliveryWindow(cut)
    granted = GrantedStream(StreamId(1, 0), 1, Progress(0), 0, (), 0)
    [read] = window.step(Installed(1, 1, granted, ACK_WAIT_MS), 0)
    assert isinstance(read, Read)
    assert window.step(Grown(1), 0) == []
    assert window.step(ChunkRead(1, 0, b"", (), 0, 0, 0), 0) == [read]


def test_a_stream_whose_end_was_sent_is_read_again_only_once_it_grows() -> None:
    window = DeliveryWindow(cut)
    granted = GrantedStream(StreamId(1, 0), 1, Progress(0), 0, (), 0)
    [read] = window.step(Installed(1, 1, granted, ACK_WAIT_MS), 0)
    assert isinstance(read, Read)
    log = Stream([3])
    [sent] = window.step(log.read(read), 0)
    assert isinstance(sent, Deliver)
    [read] = window.step(Grown(1), 0)
    assert isinstance(read, Read)
    assert read.offset == 3


def test_growth_while_the_end_of_a_stream_waits_for_credit_is_not_missed() -> None:
    window = DeliveryWindow(cut, credit_records=3)
    reads = []
    for grant in (1, 2):
        granted = GrantedStream(StreamId(1, grant), 1, Progress(0), 0, (), 0)
        reads += window.step(Installed(grant, 1, granted, ACK_WAIT_MS), 0)
    for read in reads:
        assert isinstance(read, Read)
        window.step(Stream([3]).read(read), 0)
    window.step(Grown(2), 0)
    sent = window.step(Settle(1, ((0, 3),), frontier=3), 0)
    assert [each.grant for each in sent if isinstance(each, Deliver)] == [2]
    effects = window.step(Settle(2, ((0, 3),), frontier=3), 0)
    assert [each.offset for each in effects if isinstance(each, Read)] == [3]


def test_records_that_the_filter_rejects_count_as_acked() -> None:
    client = Client()
    client.install(1, Stream([4, 4], mask=((0, 2), (5, 6))))
    assert client.take() == [(((2, 5), (6, 8)), False, 1)]
    client.feed(Settle(1, ((2, 5), (6, 8)), frontier=8))
    client.tick(10)
    assert client.reports[1].progress == Progress(8)


def test_what_the_filter_rejects_after_the_last_record_is_acked_without_the_client() -> None:
    client = Client()
    client.install(1, Stream([4, 4], mask=((2, 5), (6, 8))))
    assert client.take() == [(((0, 2), (5, 6)), False, 1)]
    client.feed(Settle(1, ((0, 2), (5, 6)), frontier=6))
    client.feed(RevokeBegun(1, 1_000), RevokeFinished(1))
    assert client.reports[1].progress == Progress(8)
    assert client.reports[1].frontier == 8


def test_credit_that_settles_give_back_together_is_spent_together() -> None:
    client = Client(records=4)
    for grant, sizes in ((1, [2]), (2, [2]), (3, [2, 2, 2])):
        client.install(grant, Stream(sizes))
    assert len(client.take()) == 2
    client.feed(Settles(tuple(Settle(grant, ((0, 2),), frontier=2) for grant in (1, 2))))
    assert client.take() == [(((0, 4),), False, 1)]


def test_records_lost_to_retention_count_as_acked() -> None:
    client = Client()
    client.install(1, Stream([4, 4], start=4))
    assert client.take() == [(((4, 8),), False, 1)]
    client.tick(10)
    assert client.reports[1].progress == Progress(4)


def test_a_nak_brings_the_record_again_after_a_second_then_two() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.take()
    client.feed(Settle(1, ((0, 1),), (Nak(1, 2),), frontier=4))
    client.tick(999)
    assert client.take() == []
    client.tick(1)
    assert client.take() == [(((1, 2),), True, 2)]
    client.feed(Settle(1, naks=(Nak(1, 2),), handed_out=((1, 2),)))
    client.tick(1_999)
    assert client.take() == []
    client.tick(1)
    assert client.take() == [(((1, 2),), True, 3)]


def test_a_nak_with_a_delay_of_nothing_brings_it_at_once() -> None:
    client = Client()
    client.install(1, Stream([2]))
    client.take()
    client.feed(Settle(1, naks=(Nak(0, 1, 0),), frontier=1))
    assert client.take() == [(((0, 1),), True, 2)]


def test_a_nak_of_what_was_not_handed_out_is_not_charged_but_marked() -> None:
    client = Client()
    client.install(1, Stream([2]))
    client.take()
    client.feed(Settle(1, naks=(Nak(0, 2),), frontier=0))
    client.tick(1_000)
    assert client.take() == [(((0, 2),), True, 1)]


def test_the_ack_wait_counts_from_the_hand_out() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.take()
    client.tick(ACK_WAIT_MS * 3)
    assert client.take() == []
    client.feed(Settle(1, frontier=2))
    client.tick(ACK_WAIT_MS - 1)
    assert client.take() == []
    client.tick(1)
    assert client.take() == []
    client.tick(1_000)
    assert client.take() == [(((0, 2),), True, 2)]


@pytest.mark.parametrize(("wait_ms", "due_ms"), [(ACK_WAIT_MS // 2, 0), (2 * ACK_WAIT_MS, 1)])
def test_an_edited_ack_wait_counts_for_what_is_out(wait_ms: int, due_ms: int) -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.feed(Settle(1, frontier=4))
    client.take()
    client.tick(ACK_WAIT_MS - 1)
    client.feed(Edited(1, wait_ms, stall_at_damage=False), Edited(2, 1, stall_at_damage=False))
    client.tick(due_ms * ACK_WAIT_MS)
    client.tick(999)
    assert client.take() == []
    client.tick(2)
    assert client.take() == [(((0, 4),), True, 2)]


def test_a_group_that_is_edited_to_pass_over_damage_goes_on_at_once() -> None:
    client = Client()
    client.install(1, Stream([4, 4], start=4, damaged=((1, 4),)), stall=True)
    client.tick(10)
    assert client.take() == []
    client.feed(Edited(1, ACK_WAIT_MS, stall_at_damage=False))
    client.tick(0)
    assert client.take() == [(((4, 8),), False, 1)]


def test_a_group_that_is_edited_to_stall_stops_at_damage() -> None:
    client = Client()
    stream = Stream([4])
    client.install(1, stream)
    client.take()
    client.feed(Edited(1, ACK_WAIT_MS, stall_at_damage=True))
    stream.append(4)
    stream.append(4)
    stream.start, stream.damaged = 8, ((4, 8),)
    client.feed(Grown(1))
    client.tick(10)
    assert client.take() == []
    assert client.reports[1].stall is Stall.DAMAGED


def test_in_progress_begins_the_ack_wait_anew() -> None:
    client = Client()
    client.install(1, Stream([2]))
    client.feed(Settle(1, frontier=2))
    client.take()
    client.tick(ACK_WAIT_MS - 100)
    client.feed(Settle(1, in_progress=((0, 1),)))
    client.tick(2_000)
    assert client.take() == [(((1, 2),), True, 2)]
    client.feed(Settle(1, ((1, 2),)))
    client.tick(ACK_WAIT_MS)
    assert client.take() == [(((0, 1),), True, 2)]


def test_what_comes_again_waits_for_its_ack_only_once_it_is_handed_out() -> None:
    client = Client()
    client.install(1, Stream([2]))
    client.feed(Settle(1, naks=(Nak(0, 1, 0),), frontier=2))
    client.take()
    out = client.window.credit.out_records
    client.tick(10 * ACK_WAIT_MS)
    assert [ranges for ranges, _, _ in client.take()] == [((1, 2),)], "only the other one"
    assert client.window.credit.out_records == out, "its credit does not come back"
    client.feed(Settle(1, handed_out=((0, 1),)))
    client.tick(ACK_WAIT_MS + 2_000)
    assert client.take() == [(((0, 1),), True, 3)]


def test_what_came_again_is_charged_when_it_is_handed_out() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.feed(Settle(1, naks=(Nak(0, 4, 0),), frontier=4))
    assert client.take()[-1] == (((0, 4),), True, 2)
    client.feed(Settle(1, handed_out=((0, 1), (2, 3))))
    client.feed(Settle(1, handed_out=((0, 1),)))
    client.tick(10)
    assert client.reports[1].attempts == ((0, 1, 2), (2, 3, 2))
    client.feed(Closing())
    report = client.reports[1]
    assert report.attempts == ((0, 4, 2),), "the others perhaps were, too"


def test_a_wait_of_the_sending_before_does_not_take_back_what_came_again() -> None:
    client = Client()
    client.install(1, Stream([1]))
    client.feed(Settle(1, frontier=1))
    client.take()
    client.tick(ACK_WAIT_MS - 100)
    client.feed(Settle(1, in_progress=((0, 1),)))
    client.feed(Settle(1, naks=(Nak(0, 1, 0),)))
    assert client.take() == [(((0, 1),), True, 2)]
    client.tick(3 * ACK_WAIT_MS)
    assert client.take() == []
    assert client.window.credit.out_records == 1


def test_a_late_nak_does_not_bring_a_second_copy_of_what_is_on_its_way_again() -> None:
    client = Client()
    client.install(1, Stream([1]))
    client.feed(Settle(1, frontier=1))
    client.tick(ACK_WAIT_MS + 2_000)
    assert client.take()[1:] == [(((0, 1),), True, 2)]
    client.feed(Settle(1, naks=(Nak(0, 1, 0),), frontier=1))
    assert client.take() == []
    assert client.window.credit.out_records == 1
    client.feed(Settle(1, naks=(Nak(0, 1, 0),), handed_out=((0, 1),)))
    assert client.take() == [(((0, 1),), True, 3)]


def test_a_client_that_is_stuck_is_sent_each_record_again_only_once() -> None:
    client = Client(records=1_000)
    client.install(1, Stream([100] * 10))
    client.take()
    client.feed(Settle(1, frontier=1_000))
    client.tick(3_600_000)
    again = [offset for ranges, _, _ in client.take() for a, b in ranges for offset in range(a, b)]
    assert sorted(again) == list(range(1_000))


def test_work_in_progress_on_single_records_stays_cheap() -> None:
    client = Client(records=1_000)
    client.install(1, Stream([1_000]))
    client.feed(Settle(1, frontier=1_000))
    client.take()
    for _ in range(60):
        singles = tuple((offset, offset + 1) for offset in range(0, 1_000, 2))
        client.feed(Settle(1, in_progress=singles))
        client.tick(1_000)
    again = [offset for ranges, _, _ in client.take() for a, b in ranges for offset in range(a, b)]
    assert sorted(again) == list(range(1, 1_000, 2))


def test_a_late_ack_of_a_resting_record_is_taken() -> None:
    client = Client()
    client.install(1, Stream([2]))
    client.feed(Settle(1, naks=(Nak(0, 1),), frontier=2))
    client.take()
    client.feed(Settle(1, ((0, 2),)))
    client.tick(5_000)
    assert client.take() == []
    assert client.reports[1].progress == Progress(2)


def test_what_was_handed_out_before_is_marked_and_halved() -> None:
    client = Client(records=8)
    client.install(1, Stream([8, 8]), progress=Progress(0), frontier=8)
    assert client.take() == [(((0, 4),), True, 2)]
    client.feed(Settle(1, ((0, 4),), frontier=4))
    assert client.take() == [(((4, 8),), True, 2), (((8, 16),), False, 1)]


def test_a_record_that_clients_vanished_with_comes_alone_and_the_stream_goes_on_around_it() -> None:
    client = Client(records=8)
    suspects, rests = ((2, 4, 5),), ((2, 4, Due(16_000, 16_000)),)
    client.install(1, Stream([8]), frontier=8, attempts=suspects, doubts=suspects, rests=rests)
    assert client.take() == [(((0, 2), (4, 6)), True, 2)]
    client.feed(Settle(1, ((0, 2), (4, 6)), frontier=6))
    assert client.take() == [(((6, 8),), True, 2)]
    client.feed(Settle(1, ((6, 8),), frontier=8))
    client.tick(15_999)
    assert client.take() == []
    client.tick(1)
    assert client.take() == [(((2, 3),), True, 6)]
    client.tick(1_000)
    assert client.take() == [], "one at a time"
    client.feed(Settle(1, ((2, 3),), handed_out=((2, 3),)))
    client.tick(1)
    assert client.take() == [(((3, 4),), True, 6)]


def test_a_record_that_comes_alone_waits_no_longer_where_its_stream_changes_hands() -> None:
    client = Client(records=64)
    before = ((0, 1, ISOLATE_AFTER_DOUBTS - 1),)
    client.install(1, Stream([1]), attempts=before, doubts=before)
    client.feed(Closing())
    report, rest_ms = client.reports[1], backoff_ms(ISOLATE_AFTER_DOUBTS)
    assert report.fate.rests == ((0, 1, Due(rest_ms, rest_ms)),)

    def lend(grant: int, ahead_ms: int) -> None:
        known, fate = report.attempts, report.fate
        doubts, rests = fate.doubts, fate.rests
        client.install(
            grant, Stream([1]), attempts=known, doubts=doubts, rests=rests, wall_ahead_ms=ahead_ms
        )

    for later_ms in range(0, rest_ms, rest_ms // 4):
        client = Client(records=64)
        lend(1, later_ms)
        client.tick(rest_ms // 4 - 1)
        assert client.take() == []
        client.feed(RevokeBegun(1, 1_000), RevokeFinished(1))
        report = client.reports[1]
    lend(2, later_ms)
    client.tick(1)
    assert client.take() == [(((0, 1),), True, ISOLATE_AFTER_DOUBTS + 1)]
    client.feed(Closing())
    twice_ms = later_ms + client.now_ms + 2 * rest_ms
    assert client.reports[2].fate.rests == ((0, 1, Due(twice_ms, 2 * rest_ms)),)


def test_of_all_that_clients_vanished_with_in_turn_only_a_few_leave_their_order() -> None:
    attempts: Attempts = ()
    fate = Fate()
    first: list[int] = []
    for _ in range(ISOLATE_AFTER_DOUBTS + 1):
        client = Client(records=CREDIT_RECORDS)
        doubts, rests = fate.doubts, fate.rests
        client.install(1, Stream([1_000] * 9), attempts=attempts, doubts=doubts, rests=rests)
        first.append(client.take()[0][0][0][0])
        client.feed(Closing())
        report = client.reports[1]
        attempts, fate = report.attempts, report.fate
    assert first[:-1] == [0] * ISOLATE_AFTER_DOUBTS
    assert 0 < first[-1] < 20


def test_a_record_that_was_out_alone_as_its_client_vanished_has_failed() -> None:
    client = Client(records=8)
    client.install(1, Stream([1]))
    client.feed(Settle(1, frontier=1))
    client.feed(Closing())
    assert client.reports[1].fate.failures == ((0, 1, 1),)
    assert client.reports[1].attempts == ()


def test_of_several_that_were_out_nobody_knows_which_failed() -> None:
    client = Client(records=8)
    client.install(1, Stream([1]))
    client.install(2, Stream([1]))
    client.feed(Closing())
    assert [client.reports[grant].fate.failures for grant in (1, 2)] == [(), ()]
    assert [client.reports[grant].attempts for grant in (1, 2)] == [((0, 1, 1),)] * 2


def test_perhaps_handed_out_is_marked_without_being_charged() -> None:
    client = Client()
    client.install(1, Stream([8]), suspect_end=3)
    assert client.take() == [(((0, 3),), True, 1), (((3, 8),), False, 1)]


def test_acked_ranges_of_the_grant_are_masked() -> None:
    client = Client()
    client.install(1, Stream([8]), progress=Progress(1, ((3, 5),)), frontier=0)
    assert client.take() == [(((1, 3), (5, 8)), False, 1)]


def test_what_was_out_as_a_client_vanished_counts_as_an_attempt_in_doubt() -> None:
    client = Client()
    client.install(1, Stream([8]))
    client.feed(Settle(1, frontier=1))
    client.feed(Closing())
    report = client.reports[1]
    assert (report.progress, report.frontier, report.sent) == (Progress(0), 1, 8)
    assert report.attempts == ((1, 8, 1),)
    assert report.fate.failures == ()


def test_a_daemon_that_stops_charges_nobody() -> None:
    client = Client()
    client.install(1, Stream([8]))
    client.feed(Settle(1, frontier=1), Draining(2_000), Closing())
    assert client.reports[1].attempts == ()


def test_a_daemon_that_stops_charges_not_even_those_who_do_not_answer_in_time() -> None:
    client = Client()
    client.install(1, Stream([8]))
    client.feed(Settle(1, frontier=1), Draining(2_000))
    client.tick(2_000)
    assert client.window.drained
    client.feed(Closing())
    report = client.reports[1]
    assert (report.frontier, report.sent, report.attempts) == (1, 8, ())


def test_who_is_drained_for_another_and_does_not_answer_in_time_is_in_doubt() -> None:
    client = Client()
    client.install(1, Stream([8]))
    client.feed(Settle(1, frontier=1), Draining(2_000, charges=True))
    client.tick(2_000)
    assert client.window.drained
    client.feed(Closing())
    report = client.reports[1]
    assert (report.frontier, report.sent) == (1, 8)
    assert (report.attempts, report.fate.doubts) == (((1, 8, 1),), ((0, 8, 1),))


def test_who_vanishes_while_it_is_drained_for_another_leaves_in_doubt_what_it_did_not_answer() -> (
    None
):
    client = Client()
    client.install(1, Stream([8]))
    client.install(2, Stream([8]))
    client.feed(Draining(2_000, charges=True))
    client.feed(Settle(1, frontier=1), RevokeFinished(1), Closing())
    assert client.reports[1].attempts == ()
    assert client.reports[2].attempts == ((0, 8, 1),)


def test_what_was_handed_out_out_of_turn_is_charged_and_waits_for_its_ack() -> None:
    client = Client()
    client.install(1, Stream([8]))
    client.take()
    client.feed(Settle(1, frontier=2, handed_out=((5, 6),)))
    client.tick(10)
    assert client.reports[1].attempts == ((5, 6, 1),)
    client.tick(ACK_WAIT_MS + 2_000)
    assert client.take() == [(((0, 2), (5, 6)), True, 2)]


def refused_out_of_turn() -> Client:
    """Record 5 was handed out while those from 2 on wait, refused, and sent again."""
    client = Client()
    client.install(1, Stream([8]))
    client.take()
    client.feed(Settle(1, frontier=2, handed_out=((5, 6),)), Settle(1, naks=(Nak(5, 6, 0),)))
    assert client.take() == [(((5, 6),), True, 2)]
    return client


@pytest.mark.parametrize("frontier", [2, 8])
def test_what_was_refused_out_of_turn_and_is_handed_out_again_is_charged_again(
    frontier: int,
) -> None:
    client = refused_out_of_turn()
    # The frontier may have passed it meanwhile; that does not say that it was handed out again.
    client.feed(Settle(1, frontier=frontier), Settle(1, handed_out=((5, 6),)))
    client.tick(10)
    assert client.reports[1].attempts == ((5, 6, 2),)
    client.feed(Settle(1, naks=(Nak(5, 6, 0),)))
    assert client.take() == [(((5, 6),), True, 3)]


def test_what_was_refused_out_of_turn_is_charged_once_where_the_client_vanishes() -> None:
    client = refused_out_of_turn()
    client.feed(Closing())
    assert (5, 6, 2) in client.reports[1].attempts


def test_a_delay_that_a_user_chose_goes_along_with_the_stream() -> None:
    client = Client()
    client.install(1, Stream([4]), wall_ahead_ms=1_000_000)
    client.feed(Settle(1, naks=(Nak(1, 2, 30_000), Nak(2, 3, 999)), frontier=4), Closing())
    rests = client.reports[1].fate.rests
    assert rests == ((1, 2, Due(1_030_000, 30_000)),)
    after = Client()
    after.install(1, Stream([4]), frontier=4, rests=rests, wall_ahead_ms=1_020_000)
    assert after.take() == [(((0, 1), (2, 4)), True, 2)]
    after.feed(Settle(1, ((0, 1), (2, 4)), frontier=4))
    after.tick(9_999)
    assert after.take() == []
    after.tick(1)
    assert after.take() == [(((1, 2),), True, 2)]
    after.tick(10)
    assert after.reports[1].attempts == (), "the frontier passed it by: it was not handed out"
    after.feed(Settle(1, handed_out=((1, 2),)), Settle(1, ((1, 2),)))
    after.tick(10)
    assert after.reports[1].progress == Progress(4)


def test_every_offset_is_counted_as_what_became_of_it() -> None:
    client = Client()
    client.install(1, Stream([4, 4, 4], start=4, mask=((5, 7),), lost=((0, 4),)))
    client.feed(Settle(1, ((4, 5), (7, 9)), frontier=12))
    client.feed(Settle(1, ((4, 5), (8, 10))))
    client.tick(10)
    assert client.reports[1].fate.counts == Counts(acked=4, filtered=2, lost=4)


def test_a_read_that_fails_is_tried_again_and_passes_nothing() -> None:
    client = Client()
    client.install(1, Stream([4]), failing=3)
    assert client.take() == []
    client.tick(10)
    assert client.reports[1].stall is Stall.UNREADABLE
    assert client.reports[1].progress == Progress(0)
    client.tick(249 + 500)
    assert client.take() == []
    client.tick(1_000)
    assert client.take() == [(((0, 4),), False, 1)]
    client.tick(10)
    assert not client.reports[1].stall


def test_what_a_step_sends_goes_before_its_reports() -> None:
    client = Client(records=4)
    client.install(1, Stream([3]), subscription=1)
    client.install(2, Stream([1] * 4), subscription=2)
    client.feed(RevokeBegun(1, 1_000))
    effects = client.window.step(RevokeFinished(1), 0)
    assert [type(effect) for effect in effects] == [Deliver, Report]


def test_what_was_acknowledged_while_it_rested_is_not_read_and_holds_up_nothing() -> None:
    client, stream = Client(), Stream([1, 1, 1, 1])
    client.install(1, stream)
    client.take()
    client.feed(Settle(1, naks=(Nak(1, 2), Nak(3, 4)), frontier=4), Settle(1, ((1, 2),)))
    stream.per_read, stream.unreadable = 1, (1, 2)
    client.tick(1_000)
    assert client.take() == [(((3, 4),), True, 2)]
    client.tick(10)
    assert not client.reports[1].stall


def test_what_the_group_is_done_with_is_not_read() -> None:
    client = Client()
    stream = Stream([1, 1, 1, 1])
    stream.per_read, stream.unreadable = 1, (1, 3)
    client.install(1, stream, progress=Progress(0, ((1, 3),)))
    assert client.take() == [(((0, 1),), False, 1), (((3, 4),), False, 1)]


def test_what_the_group_is_done_with_is_not_read_where_nothing_is_left_before_it() -> None:
    client = Client()
    # The filter rejects what comes first, and then all is done up to the last record.
    stream = Stream([1, 1, 1, 1], mask=((0, 1),))
    stream.per_read, stream.unreadable = 1, (1, 3)
    client.install(1, stream, progress=Progress(0, ((1, 3),)))
    assert client.take() == [(((3, 4),), False, 1)]


@pytest.mark.parametrize("stall", [False, True])
def test_confirmed_damage_is_passed_and_counted_or_stalls_the_group(stall: bool) -> None:
    client = Client()
    client.install(1, Stream([4, 4], start=4, damaged=((1, 4),), lost=((0, 1),)), stall=stall)
    client.tick(10)
    report = client.reports[1]
    if stall:
        # What is lost lies before the damage, so the group is done with it.
        assert (client.take(), report.progress) == ([], Progress(1))
        assert (report.stall, report.fate.counts) == (Stall.DAMAGED, Counts(lost=1))
    else:
        assert (client.take(), report.progress) == ([(((4, 8),), False, 1)], Progress(4))
        assert report.fate.damaged == ((1, 4),)
        assert report.fate.counts == Counts(lost=1, damaged=3)


def test_a_group_does_not_stall_before_damage_that_it_is_done_with() -> None:
    client = Client()
    progress = Progress(1, ((2, 4),))
    stream = Stream([4, 4], start=4, damaged=((1, 4),))
    client.install(1, stream, progress=progress, stall=True)
    assert client.take() == []
    assert client.window.not_done(1, ((0, 3),)) == ((1, 2),)
    client.install(2, stream, progress=Progress(1, ((1, 4),)), stall=True)
    assert client.take() == [(((4, 8),), False, 1)]
    client.feed(Settle(2, ((4, 8),), frontier=8))
    client.tick(10)
    assert (client.reports[2].fate.damaged, client.reports[2].fate.counts) == ((), Counts(acked=4))


def test_a_refused_record_that_is_damaged_does_not_keep_the_others_of_a_stalled_group() -> None:
    client = Client()
    stream = Stream([1, 1, 1])
    client.install(1, stream, stall=True)
    client.take()
    client.feed(Settle(1, naks=(Nak(0, 3, 1_000),), frontier=3))
    stream.frames, stream.damaged, stream.per_read = [(0, 1), (2, 1)], ((1, 2),), 1
    client.tick(1_000)
    client.tick(2_000)
    assert client.take() == [(((0, 1),), True, 2)]
    client.feed(Settle(1, naks=(Nak(0, 1, 10),), frontier=3, handed_out=((0, 1),)))
    client.tick(10_000)
    assert client.take() == [(((0, 1),), True, 3)]


def test_a_wrong_ack_is_refused_and_changes_nothing() -> None:
    client = Client()
    client.install(1, Stream([4]), progress=Progress(2))
    client.take()
    for wrong in ((0, 3), (3, 5), (3, 3), (4, 3)):
        client.feed(Settle(1, (wrong,)))
        assert client.take_others() == [RefuseRange(1, *wrong)]
    client.feed(Settle(9, ((0, 1),)))
    assert client.take_others() == [RefuseGrant(9)]
    client.tick(10)
    assert 1 not in client.reports or client.reports[1].progress == Progress(2)


def test_a_synchronous_ack_is_answered_when_it_is_durable() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.install(2, Stream([4]))
    client.take()
    client.feed(Settle(1, ((1, 2),), token=7))
    client.feed(Settle(2, ((0, 4),), token=7))
    client.feed(Saved(1, Progress(0)))
    client.feed(Saved(2, Progress(4)))
    assert client.take_others() == []
    client.feed(Saved(1, Progress(0, ((1, 3),))))
    assert client.take_others() == [AnswerSettled(7)]


def test_an_ack_that_a_client_waits_for_is_reported_at_once() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.tick(0)
    client.feed(Settle(1, ((0, 1),)))
    assert client.window.wake_at_ms != client.now_ms, "reports of a few milliseconds go together"
    client.feed(Settle(1, ((1, 2),), token=7))
    assert client.window.wake_at_ms == client.now_ms
    client.tick(0)
    assert (client.reports[1].progress, client.reports[1].is_awaited) == (Progress(2), True)
    client.feed(Saved(1, Progress(2)), Settle(1, ((2, 3),)))
    client.tick(REPORT_INTERVAL_MS)
    assert (client.reports[1].progress, client.reports[1].is_awaited) == (Progress(3), False)


def test_a_client_that_waits_for_acks_of_before_is_reported_too() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.feed(Settle(1, ((0, 1),)))
    client.tick(REPORT_INTERVAL_MS)
    assert not client.reports[1].is_awaited
    client.feed(Settle(1, token=7))
    client.tick(0)
    assert client.reports[1].is_awaited


def test_a_token_waits_for_acks_that_came_before_it() -> None:
    client = Client()
    client.install(1, Stream([10]))
    client.feed(Settle(1, ((0, 4), (5, 6)), frontier=10))
    client.feed(Settle(1, frontier=10, token=7))
    client.feed(Saved(1, Progress(4)))
    assert client.take_others() == []
    client.feed(Saved(1, Progress(4, ((5, 6),))))
    assert client.take_others() == [AnswerSettled(7)]
    client.feed(Settle(1, token=8))
    assert client.take_others() == [AnswerSettled(8)]


def test_a_synchronous_ack_of_a_grant_that_ends_is_refused() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.feed(Settle(1, ((0, 1),), token=7))
    client.feed(Dropped(1))
    assert client.take_others() == [RefuseGrant(1)]


def test_a_revoke_waits_for_the_client_and_reports_finally() -> None:
    client = Client()
    client.install(1, Stream([4, 4]))
    client.feed(Settle(1, frontier=3))
    client.take()
    client.feed(RevokeBegun(1, 10_000))
    assert client.take_others() == [SendRevoke(1, 10_000)]
    client.feed(Settle(1, ((0, 2),), token=5, frontier=3))
    client.feed(RevokeFinished(1))
    assert client.reports[1] == StreamReport(StreamId(1, 1), 1, Progress(2), 3, fate=ACKED_TWO)
    assert client.window.credit.out_records == 0
    client.feed(Settle(1, ((2, 3),)))
    assert client.take_others() == [RefuseGrant(1)]
    client.feed(Saved(1, Progress(2)), Dropped(1))
    assert client.take_others() == [AnswerSettled(5)]


def test_a_refusal_names_the_token_of_acks_of_which_none_counts() -> None:
    client = Client()
    client.feed(Settle(9, ((0, 1),), token=5))
    assert client.take_others() == [RefuseGrant(9, 5)]


def test_a_refused_token_that_stands_for_pieces_is_not_named_as_some_may_count() -> None:
    client = Client()
    client.install(1, Stream([4]))
    *acked, last = pieces_of(Settle(1, ((0, 1), (2, 3)), token=5), 1)
    client.feed(*acked, Dropped(1))
    client.take_others()
    client.feed(last)
    assert client.take_others() == [RefuseGrant(1)]


def test_a_revoke_that_the_client_does_not_answer_is_reported_before_its_deadline() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.feed(RevokeBegun(1, 10_000))
    client.tick(9_999)
    assert client.reports[1].sent == 4
    assert client.take() == [(((0, 4),), False, 1)]


def test_who_does_not_answer_a_revoke_did_not_vanish() -> None:
    client = Client()
    client.install(1, Stream([8]))
    client.feed(Settle(1, frontier=2), RevokeBegun(1, 1_000))
    client.tick(1_000)
    client.feed(Closing())
    report = client.reports[1]
    assert (report.frontier, report.sent) == (2, 8)
    assert (report.attempts, report.fate.doubts) == (((2, 8, 1),), ())


def test_nothing_comes_again_while_a_stream_is_revoked() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.feed(Settle(1, naks=(Nak(0, 1),), frontier=4))
    client.take()
    client.feed(RevokeBegun(1, 10_000))
    client.feed(Settle(1, naks=(Nak(1, 2, 0),)))
    client.tick(5_000)
    assert client.take() == []


def test_a_suspended_subscription_gets_nothing_until_it_resumes() -> None:
    client = Client(records=4)
    client.install(1, Stream([4, 4]))
    client.take()
    client.feed(Suspended(1), Settle(1, ((0, 4),)))
    assert client.take() == []
    client.feed(Resumed(1))
    assert client.take() == [(((4, 8),), False, 1)]


def test_a_paused_subscription_gets_nothing_until_it_is_resumed() -> None:
    client = Client(records=4)
    client.install(1, Stream([4, 4]))
    client.take()
    client.feed(Paused(1), Settle(1, ((0, 4),)))
    client.install(2, Stream([4]))
    client.streams[1].append(4)
    client.feed(Grown(1))
    assert client.take() == []
    client.feed(Unpaused(1))
    assert client.take() == [(((4, 8),), False, 1)]


def test_a_pause_and_a_suspension_do_not_lift_each_other() -> None:
    client = Client()
    client.feed(Paused(1), Suspended(1))
    client.install(1, Stream([4]))
    client.feed(Resumed(1))
    assert client.take() == []
    client.feed(Suspended(1), Unpaused(1))
    assert client.take() == []
    client.feed(Resumed(1))
    assert client.take() == [(((0, 4),), False, 1)]


def test_what_expires_in_a_pause_rests_until_it_is_over_and_failed_at_nothing() -> None:
    client = Client()
    client.install(1, Stream([4]), ack_wait_ms=1_000)
    client.take()
    client.feed(Settle(1, frontier=2), Paused(1))
    client.tick(60_000)
    assert client.take() == []
    assert not client.reports[1].fate.failures
    client.feed(Settle(1, acked=((1, 2),)))
    client.feed(Unpaused(1))
    assert client.take() == [(((0, 1),), True, 2)]
    client.feed(Settle(1, frontier=2, handed_out=((0, 1),)))
    client.tick(60_000)
    assert client.reports[1].fate.failures == ((0, 1, 1),), "expired outside of a pause"


def test_who_vanishes_in_a_pause_leaves_no_doubt() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.feed(Settle(1, frontier=2), Paused(1), Closing())
    assert client.reports[1].fate.doubts == ()
    assert client.reports[1].attempts == ()
    assert client.reports[1].sent == 4


def test_who_does_not_answer_a_revoke_in_a_pause_leaves_no_doubt() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.feed(Settle(1, frontier=2), Paused(1), RevokeBegun(1, 1_000))
    client.tick(1_000)
    assert client.reports[1].fate.doubts == ()
    assert client.reports[1].sent == 4


def test_a_grant_that_the_client_drops_unasked_ends_as_not_handed_out() -> None:
    client = Client(records=4)
    client.install(1, Stream([4, 4]))
    client.install(2, Stream([4, 4]))
    assert client.take() == [(((0, 4),), False, 1)]
    client.take_others()
    client.feed(RevokeFinished(1))
    assert client.others[:2] == [
        Report(((1, StreamReport(StreamId(1, 1), 1, Progress(0), 0)),), final=True),
        Unwanted(1),
    ]
    assert [each.grant for each in client.delivered] == [2], "its credit came back"
    client.take_others()
    client.feed(RevokeFinished(1))
    assert client.take_others() == [RefuseGrant(1)]


def test_nothing_is_kept_of_a_subscription_that_is_over() -> None:
    client = Client()
    client.install(1, Stream([4]), subscription=1)
    client.feed(Suspended(1), Dropped(1), Left(1))
    client.install(2, Stream([4]), subscription=1)
    assert client.delivered[-1].grant == 2


def test_draining_learns_how_far_the_client_handed_out() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.feed(Draining(2_000))
    assert not client.window.drained
    client.feed(Settle(1, ((0, 1),), frontier=2), RevokeFinished(1))
    assert client.window.drained
    client.feed(Closing())
    assert client.reports[1] == StreamReport(
        StreamId(1, 1), 1, Progress(1), 2, sent=2, fate=Fate(counts=Counts(acked=1))
    )


def test_at_the_cap_of_acked_ranges_the_stream_pauses_and_shows_it() -> None:
    client = Client(records=1_000)
    client.install(1, Stream([1] * 5_000))
    at = 0
    for _ in range(100):
        fresh = [r for ranges, _, _ in client.take() for r in ranges]
        if not fresh:
            break
        every = [o for low, high in fresh for o in range(low, high)]
        acks = tuple((o, o + 1) for o in every if o % 2)
        naks = tuple(Nak(o, o + 1, 3_600_000) for o in every if o % 2 == 0)
        at = max(at, every[-1] + 1)
        client.feed(Settle(1, acks, naks, frontier=at))
    assert at < 5_000
    client.tick(10)
    assert 1_024 <= len(client.reports[1].progress.ranges) <= 1_024 + 1_000 // 2
    assert ShowStalled(1, 1, Stall.UNACKED, 0) in client.take_others()
    assert client.reports[1].stall is Stall.UNACKED
    client.feed(Settle(1, ((0, at),)))
    client.tick(10)
    assert not client.reports[1].stall


@pytest.mark.parametrize("gap", [1, 2, 7])
@pytest.mark.parametrize("islands", [1_023, 1_024, 2_500])
def test_a_new_holder_at_the_cap_of_acked_ranges_gets_all_that_is_left(
    gap: int, islands: int
) -> None:
    period = gap + 1
    ranges = tuple((at * period + gap, (at + 1) * period) for at in range(islands))
    frames = islands * period // 100 + 1
    client = Client(records=1_000)
    client.install(1, Stream([100] * frames), progress=Progress(0, ranges), frontier=ranges[-1][1])
    seen: set[int] = set()
    while got := handed(client):
        assert not seen & set(got)
        seen.update(got)
        client.feed(Settle(1, tuple((o, o + 1) for o in got), frontier=max(got) + 1))
    assert seen == set(range(frames * 100)) - {o for low, high in ranges for o in range(low, high)}


def test_a_new_holder_at_the_cap_waits_where_it_adds_ranges_of_its_own() -> None:
    ranges = tuple((at * 100 + 99, (at + 1) * 100) for at in range(2_000))
    client = Client(records=1_000)
    client.install(1, Stream([100] * 2_000), progress=Progress(0, ranges), frontier=200_000)
    count = 0
    while got := handed(client):
        count += len(got)
        odd = tuple((o, o + 1) for o in got if o % 2)
        client.feed(Settle(1, odd, frontier=max(got) + 1))
    assert count <= 1_000
    client.tick(10)
    assert client.reports[1].stall is Stall.UNACKED


def test_records_of_one_attempt_go_together_past_what_is_acknowledged() -> None:
    client = Client()
    ranges = tuple((at, at + 1) for at in range(1, 100, 2))
    attempts = tuple((at, at + 1, 2) for at in range(0, 100, 2))
    client.install(1, Stream([100]), progress=Progress(0, ranges), frontier=100, attempts=attempts)
    assert client.take() == [(tuple((at, at + 1) for at in range(0, 100, 2)), True, 3)]


def test_one_record_that_is_out_at_the_cap_holds_up_no_other() -> None:
    ranges = tuple((at, at + 1) for at in range(1, 5_000, 2))
    attempts = tuple((at, at + 1, 1 + at % 4 // 2) for at in range(0, 5_000, 2))
    client = Client()
    client.install(
        1, Stream([100] * 50), progress=Progress(0, ranges), frontier=5_000, attempts=attempts
    )
    seen: set[int] = set()
    while got := handed(client):
        seen.update(got)
        acks = tuple((o, o + 1) for o in got if o)
        client.feed(Settle(1, acks, frontier=max(got) + 1))
    assert len(seen) == 2_500


def handed(client: Client) -> list[int]:
    """The offsets of what it was sent since it was asked last."""
    spans = [span for ranges, _, _ in client.take() for span in ranges]
    return [offset for low, high in spans for offset in range(low, high)]


def test_a_client_that_stops_reading_costs_at_most_its_credit_and_a_few_chunks() -> None:
    window = DeliveryWindow(cut, credit_records=10)
    reads: list[Read] = []
    for grant in range(1, 100):
        granted = GrantedStream(StreamId(1, grant), 1, Progress(0), 0, (), 0)
        effects = window.step(Installed(grant, 1, granted, ACK_WAIT_MS), 0)
        reads += [each for each in effects if isinstance(each, Read)]
    stream = Stream([10] * 10)
    sent = 0
    while reads:
        for effect in window.step(stream.read(reads.pop()), 0):
            if isinstance(effect, Read):
                reads.append(effect)
            elif isinstance(effect, Deliver):
                sent += total(offsets(effect))
        assert len(reads) <= 4
    assert sent == 10


def test_a_client_is_told_of_refused_records_that_do_not_come_again() -> None:
    client = Client()
    stream = Stream([4, 4])
    client.install(1, stream)
    client.feed(Settle(1, naks=(Nak(1, 2, 500), Nak(3, 5, 500)), frontier=8))
    client.take_others()
    stream.start, stream.lost = 4, ((0, 4),)
    client.tick(500)
    assert client.take_others() == [TellGone(1, ((1, 2), (3, 4)))]
    assert client.take()[-1] == (((4, 5),), True, 2)
    client.feed(Settle(1, handed_out=((4, 5),)), Settle(1, ((0, 1), (2, 3), (4, 8))))
    client.tick(10)
    assert client.reports[1].progress == Progress(8)


def test_a_suspect_that_rests_comes_once_after_its_rest() -> None:
    client = Client(records=8)
    client.install(
        1,
        Stream([4]),
        frontier=4,
        attempts=((1, 2, 5),),
        doubts=((1, 2, 5),),
        rests=((1, 2, Due(1_020_000, 20_000)),),
        wall_ahead_ms=1_000_000,
    )
    client.feed(Settle(1, ((0, 1), (2, 4)), frontier=4))
    client.take()
    client.tick(60_000)
    assert client.take() == [(((1, 2),), True, 6)]

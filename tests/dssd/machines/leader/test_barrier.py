"""A group that keeps the order of keys over storage topics: what is closed, re-homed, opened."""

from dataclasses import replace
from typing import Any

import pytest

from dss_core.progress import Progress
from dssd.machines.leader.events import (
    CursorMove,
    Hold,
    Instructed,
    LendAgain,
    MoveCursors,
    PresentStream,
    Rehomed,
    StreamsChanged,
)
from dssd.machines.leader.lent_stream import StreamState
from dssd.machines.leader.state import Leader, view
from dssd.machines.leader.stream_set_state import StreamSets
from dssd.machines.messages import (
    Disconnect,
    Revoked,
    RevokeFinished,
    StreamReport,
)
from dssd.machines.queues import BURY, SKIP, Queues, was_left_undone
from support.grown_leader import ANN, END, Run, grown, part, queues, stored
from support.played_leader import LEADER, LeaderRun, session_of


def test_only_what_has_no_unfinished_parent_is_lent() -> None:
    run = grown()
    assert [each.stream for each in run.join()] == [part(0)]
    [child, _] = [each for each in view(run.leader, 0).streams if each.stream != part(0)]
    assert (child.state, child.waits_for) == ("closed", (part(0),))


def test_where_nothing_waits_the_children_open_once_the_end_of_the_parent_is_durable() -> None:
    run = grown()
    [granted] = run.join()
    run.report(granted, END, queues(part(0)))
    told = run.commit()
    assert [type(each) for each in told] == [Revoked]
    run.tell(RevokeFinished(ANN, LEADER, granted.stream, granted.grant_epoch))
    assert (run.state(0), run.state(1)) == (StreamState.FINISHED, StreamState.CLOSED)
    assert {each.stream for each in run.granted()} == {part(1, 0), part(1, 1)}
    assert run.saved[part(0)].finished
    assert run.rehomes == []


@pytest.mark.parametrize("held", [queues(part(0), waiting=2), queues(part(0), dead=1)])
def test_what_waits_is_rehomed_once_nobody_holds_the_lane_before_children_open(
    held: Queues,
) -> None:
    run = grown()
    [granted] = run.join()
    run.report(granted, END, held)
    assert run.state(0) is StreamState.REVOKING
    run.give_back(granted, END, held)
    [asked] = run.rehomes
    assert (asked.stream, asked.grant_epoch) == (part(0), granted.grant_epoch + 1)
    assert run.saved[part(0)].grant is not None
    assert (run.state(0), run.state(1)) == (StreamState.REHOMING, StreamState.CLOSED)
    assert run.granted() == []
    assert run.rehome() == {part(1, 0), part(1, 1)}


def test_a_parent_is_not_rehomed_before_it_is_durable_that_nobody_holds_it() -> None:
    run = grown()
    [granted] = run.join()
    held = queues(part(0), waiting=1)
    run.report(granted, END, held, final=True)
    run.commit_all()
    run.tell(RevokeFinished(ANN, LEADER, granted.stream, granted.grant_epoch))
    assert run.rehomes == []
    run.commit_all()
    assert len(run.rehomes) == 1


def test_what_a_lost_holder_may_have_begun_is_rehomed_without_lending_the_lane_again() -> None:
    run = grown()
    [granted] = run.join()
    run.report(granted, END - 1, queues(part(0)))
    run.commit_all()
    last = StreamReport(
        granted.stream, granted.grant_epoch, Progress(END), END, sent=END, queues=queues(part(0))
    )
    unfinished = (replace(last.queues[0], begun=2), last.queues[1])
    run.tell(Disconnect(ANN, LEADER, (replace(last, queues=unfinished),)))
    run.commit_all()
    assert run.state(0) is StreamState.REHOMING
    assert len(run.rehomes) == 1


def test_the_next_leader_rehomes_what_the_last_one_had_begun() -> None:
    run = grown(floor=END, epoch=3)
    assert run.state(0) is StreamState.REHOMING
    run.commit_all()
    [asked] = run.rehomes
    assert asked.grant_epoch == 4
    run.feed(Rehomed(part(0), 3, asked.queues, run.now_ms))
    assert run.state(0) is StreamState.REHOMING
    run.rehome()
    assert run.state(0) is StreamState.FINISHED


def test_an_empty_sealed_child_may_hold_what_its_parents_put_there_and_stays_closed() -> None:
    run = Run(
        stored(0),
        stored(1, parents=(part(0),), floor=END),
        stored(2, parents=(part(1),), sealed=False),
    )
    [granted] = run.join()
    assert [run.state(1), run.state(2)] == [StreamState.CLOSED] * 2
    held = queues(part(0), waiting=1)
    run.report(granted, END, held)
    run.give_back(granted, END, held)
    run.rehome()
    assert (run.state(0), run.state(1)) == (StreamState.FINISHED, StreamState.REHOMING)
    assert run.state(2) is StreamState.CLOSED
    assert run.rehome() == {part(2)}


def test_a_child_of_several_parents_waits_for_each_and_for_none_that_is_gone() -> None:
    run = Run(
        stored(0, 0, floor=END, finished=True),
        stored(0, 1),
        stored(1, parents=(part(0, 0), part(0, 1)), sealed=False),
    )
    [child] = [each for each in view(run.leader, 0).streams if each.stream == part(1)]
    assert child.waits_for == (part(0, 1),)
    run.feed(StreamsChanged(run.now_ms, gone=(part(0, 0), part(0, 1))))
    assert [each.stream for each in run.join()] == [part(1)]


def test_streams_that_appear_behind_unfinished_ones_are_closed() -> None:
    run = Run(stored(0, sealed=False))
    run.join()
    born = PresentStream(part(1), None, queues(part(1)), (part(0),))
    run.feed(StreamsChanged(run.now_ms, (PresentStream(part(0), END, (), ()), born)))
    assert run.state(1) is StreamState.CLOSED
    assert run.granted() == []


def test_a_seal_at_the_end_of_what_is_read_asks_for_a_lane_with_something_in_its_queues() -> None:
    run = Run(stored(0, sealed=False), stored(1, parents=(part(0),), sealed=False))
    [granted] = run.join()
    run.report(granted, END, queues(part(0), waiting=1))
    assert run.state(0) is StreamState.GRANTED
    run.feed(StreamsChanged(run.now_ms, (PresentStream(part(0), END, (), ()),)))
    assert run.state(0) is StreamState.REVOKING


def test_a_kept_lane_is_rehomed_once_nobody_comes_back_for_it() -> None:
    kept = replace(stored(0, floor=END, epoch=1), session_id=session_of(ANN), borrower_id=ANN)
    run = Run(kept, stored(1, parents=(part(0),), sealed=False), restarted=True)
    assert run.state(0) is StreamState.FREE
    run.pass_ms(run.leader.timing.reserve_ms + 1)
    assert run.state(0) is StreamState.REHOMING


def test_an_errand_of_a_lane_that_was_rehomed_is_given_up() -> None:
    run = grown(floor=END, epoch=1)
    run.commit_all()
    run.rehome()
    run.commit_all()
    assert run.state(0) is StreamState.FINISHED
    late = CursorMove(part(0), 7, (), (), errand=BURY, entries=((0, 1),))
    run.feed(Instructed(MoveCursors(7, (late,)), run.now_ms))
    run.commit_all()
    assert run.leader.streams[part(0)].at_work() == 0
    assert run.leader.moving == {}
    assert run.state(0) is StreamState.FINISHED


@pytest.mark.parametrize("asks", [{"errand": SKIP, "entries": ((0, 1),)}, {"redriven": ((0, 1),)}])
def test_what_is_asked_of_entries_while_they_are_rehomed_is_given_up(asks: dict[str, Any]) -> None:
    run = grown(floor=END, epoch=1)
    run.commit_all()
    assert run.state(0) is StreamState.REHOMING
    run.feed(Instructed(MoveCursors(7, (CursorMove(part(0), 7, (), (), **asks),)), run.now_ms))
    run.rehome()
    run.pass_ms(500)
    run.commit_all()
    lent = run.leader.streams[part(0)]
    assert (run.state(0), run.leader.moving) == (StreamState.FINISHED, {})
    assert (lent.at_work(), lent.cursor_generation) == (0, 0)


def test_a_cursor_in_a_closed_stream_moves_and_the_stream_stays_closed() -> None:
    run = grown()
    on = CursorMove(part(1), 7, (), ((0, 4),))
    run.feed(Instructed(MoveCursors(7, (on,)), run.now_ms))
    run.commit_all()
    assert run.state(1) is StreamState.CLOSED
    assert run.saved[part(1)].progress == Progress(4)


@pytest.mark.parametrize("asks", [{"errand": BURY, "entries": ((0, 1),)}, {"redriven": ((0, 1),)}])
def test_what_is_asked_of_entries_in_a_closed_stream_is_left_undone_at_once(
    asks: dict[str, Any],
) -> None:
    run = grown(floor=0, epoch=1)
    run.commit_all()
    retry, dead = queues(part(1))
    run.leader.streams[part(1)].queues = (
        replace(retry, applied_end=1),
        replace(dead, applied_end=1),
    )
    run.feed(Instructed(MoveCursors(7, (CursorMove(part(1), 7, (), (), **asks),)), run.now_ms))
    assert run.leader.moving == {7: {part(1)}}
    run.commit_all()
    lent = run.leader.streams[part(1)]
    assert (run.state(1), lent.at_work(), run.leader.moving) == (StreamState.CLOSED, 0, {})
    assert was_left_undone(lent.saved_queues, 7)
    assert not was_left_undone(lent.saved_queues, 6)


def test_an_errand_that_waits_in_a_closed_stream_is_left_undone_by_the_next_leader() -> None:
    retry, dead = queues(part(1))
    asked = (retry.take_errand(7, BURY, ((0, 1),)), dead)
    child = replace(stored(1, parents=(part(0),), sealed=False), queues=asked)
    run = Run(stored(0), child, restarted=True)
    run.feed(Instructed(MoveCursors(7, ()), run.now_ms))
    run.pass_ms(500)
    run.commit_all()
    assert (run.state(1), run.leader.moving) == (StreamState.CLOSED, {})
    assert was_left_undone(run.leader.streams[part(1)].saved_queues, 7)


def test_while_streams_are_held_back_nothing_is_rehomed_and_it_begins_when_they_are_lent() -> None:
    run = Run(stored(0, sealed=False, epoch=1, floor=END), stored(1, parents=(part(0),)))
    run.feed(Hold(run.now_ms))
    run.commit_all()
    run.feed(StreamsChanged(run.now_ms, (PresentStream(part(0), END, (), ()),)))
    run.commit_all()
    assert (run.state(0), run.rehomes) == (StreamState.REHOMING, [])
    lanes = ((part(0), queues(part(0)), ()), (part(1), queues(part(1)), (part(0),)))
    run.feed(LendAgain(run.now_ms, lanes))
    run.commit_all()
    assert len(run.rehomes) == 1


def test_streams_are_held_back_once_what_is_being_rehomed_has_arrived() -> None:
    run = grown(floor=END, epoch=1)
    run.commit_all()
    run.feed(Hold(run.now_ms))
    run.commit_all()
    assert run.leader.holding.value == "taking_back"
    run.rehome()
    run.pass_ms(100)
    run.commit_all()
    assert run.leader.holding.value == "held"


def test_a_group_that_keeps_the_order_no_more_opens_all() -> None:
    run = grown()
    run.feed(Hold(run.now_ms))
    run.commit_all()
    lanes = tuple((each, (), None) for each in (part(0), part(1, 0), part(1, 1)))
    run.feed(LendAgain(run.now_ms, lanes))
    assert len(run.join()) == 3


def test_a_leader_does_not_stop_over_a_lane_that_it_rehomes() -> None:
    run = grown(floor=END, epoch=1)
    run.commit_all()
    run.pass_ms(60_000)
    run.commit_all()
    assert run.stopped == []


def test_a_lease_group_closes_and_opens_as_well() -> None:
    run = Run()
    run.leader = Leader(LEADER, stream_sets=StreamSets())
    LeaderRun.__init__(run, run.leader, stored(0), stored(1, parents=(part(0),), sealed=False))
    assert [each.stream for each in run.join()] == [part(0)]


def test_a_group_that_is_ordered_from_now_on_knows_what_it_had_finished_before() -> None:
    run = Run(stored(0, parents=None), stored(1, parents=None, sealed=False))
    lent = {each.stream: each for each in run.join()}
    run.report(lent[part(0)], END, queues(part(0)))
    run.commit_all()
    run.tell(RevokeFinished(ANN, LEADER, part(0), lent[part(0)].grant_epoch))
    run.pass_ms(100)
    run.commit_all()
    run.feed(Hold(run.now_ms))
    run.commit_all()
    run.give_back(lent[part(1)], 0, queues(part(1)))
    run.pass_ms(100)
    run.commit_all()
    assert run.leader.holding.value == "held"
    lanes = ((part(0), queues(part(0)), ()), (part(1), queues(part(1)), (part(0),)))
    run.feed(LendAgain(run.now_ms, lanes))
    assert [each.stream for each in run.granted()] == [part(1)]

"""A stream that was read to its end is read again: its descendants come back first."""

from dataclasses import replace

import pytest

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.leader.events import (
    CancelMoves,
    CursorMove,
    GoBack,
    Hold,
    Instructed,
    LendAgain,
    MadeMove,
    MoveCursors,
    StoredStream,
    StreamsChanged,
    WentBack,
)
from dssd.machines.leader.lent_stream import StreamState
from dssd.machines.messages import (
    GrantedStream,
    LeaderWanted,
    Revoke,
    RevokeFinished,
    StreamReport,
    UpdateProgress,
)
from dssd.machines.queues import Queues
from dssd.machines.start_point import OFFSET_MAX
from support.grown_leader import ANN, END, Run, part, queues, stored
from support.played_leader import LEADER, session_of

NUMBER = 7


def rewind(stream: StreamId, to: int = 4, *, cancelled: bool = False) -> CursorMove:
    return CursorMove(stream, NUMBER, ((to, OFFSET_MAX),), (), cancelled=cancelled)


def read_once(*, moves: tuple[CursorMove, ...] = ()) -> Run:
    """Three generations, of which the first one is finished; the last one is written to."""
    return Run(*generations(), moves=moves)


def generations() -> list[StoredStream]:
    return [
        stored(0, floor=END, finished=True, epoch=3),
        stored(1, 0, parents=(part(0),)),
        stored(1, 1, parents=(part(0),), floor=END, finished=True, epoch=2),
        stored(2, parents=(part(1, 1),), sealed=False),
    ]


def ask(run: Run, *moves: CursorMove) -> None:
    run.feed(Instructed(MoveCursors(NUMBER, moves), run.now_ms))


def states(run: Run) -> list[str]:
    return [run.state(*at).value for at in ((0,), (1, 0), (1, 1), (2,))]


def give_all_back(run: Run, held: list[GrantedStream], floor: int = 0) -> None:
    for each in held:
        run.give_back(each, floor, queues(each.stream))


def went_back(run: Run, *lanes: tuple[StreamId, Queues]) -> GoBack:
    asked = run.backs.pop()
    run.feed(WentBack(asked.stream, asked.grant_epoch, lanes, run.now_ms))
    return asked


def test_descendants_are_closed_and_come_back_before_the_cursor_moves() -> None:
    run = read_once()
    held = run.join()
    assert {each.stream for each in held} == {part(1, 0), part(2)}
    before = len(run.sent)
    ask(run, rewind(part(0)))
    asked = [each.stream for each in run.sent[before:] if isinstance(each, Revoke)]
    assert set(asked) == {part(1, 0), part(2)}
    assert states(run) == ["finished", "revoking", "closed", "revoking"]
    give_all_back(run, held[:1])
    assert run.backs == []
    give_all_back(run, held[1:])
    assert states(run) == ["finished", "closed", "closed", "closed"]
    [back] = run.backs
    assert back.stream == part(0)
    assert {each.stream for each in back.lanes} == {part(1, 0), part(1, 1), part(2)}
    assert all(each.grant_epoch == run.leader.streams[each.stream].grant_epoch
               for each in back.lanes)  # fmt: skip
    assert run.leader.streams[part(0)].progress == Progress(END)


def test_holders_of_before_are_fenced_durably_before_anything_goes_back() -> None:
    run = read_once()
    held = {each.stream: each.grant_epoch for each in run.join()}
    ask(run, rewind(part(0)))
    for stream, epoch in held.items():
        last = StreamReport(stream, epoch, Progress(0), 0, sent=0, queues=queues(stream))
        run.tell(UpdateProgress(ANN, LEADER, (last,), final=True))
        run.commit_all()
        run.tell(RevokeFinished(ANN, LEADER, stream, epoch))
    assert run.backs == []
    run.commit_all()
    [back] = run.backs
    saved = {stream: run.saved[stream].grant for stream in (part(0), *held)}
    assert {stream: grant and grant.grant_epoch for stream, grant in saved.items()} == {
        part(0): back.grant_epoch,
        **{stream: epoch + 1 for stream, epoch in held.items()},
    }
    assert all(grant is not None and grant.session_id is None for grant in saved.values())


def test_the_cursor_moves_once_it_is_durable_what_went_from_the_queues() -> None:
    run = read_once()
    ask(run, rewind(part(0)))
    run.commit_all()
    retry, dead = run.leader.streams[part(2)].queues
    left = replace(retry, progress=Progress(0, ((2, 3),))), dead
    went_back(run, (part(2), left))
    assert states(run)[0] == "finished"
    assert run.leader.moving == {NUMBER: {part(0)}}
    run.commit_all()
    assert run.saved[part(2)].queues == (left[0],)
    assert states(run) == ["free", "closed", "closed", "closed"]
    saved = run.saved[part(0)]
    assert (saved.progress, saved.finished) == (Progress(4), False)
    assert saved.ended_move == MadeMove(NUMBER, Progress(END), Progress(4))
    assert run.leader.moving == {}
    assert {each.stream for each in run.join()} == {part(0)}


def test_at_its_end_what_waits_is_rehomed_once_more_and_the_children_go_on() -> None:
    run = read_once()
    ask(run, rewind(part(0)))
    run.commit_all()
    went_back(run)
    run.commit_all()
    [granted] = run.join()
    # What came back is not reported yet: its queues are not known to be empty.
    assert not run.leader.streams[part(0)].is_over()
    held = queues(part(0), waiting=1)
    run.report(granted, END, held)
    run.give_back(granted, END, held)
    assert run.state(0) is StreamState.REHOMING
    assert part(1, 0) in run.rehome()
    # A finished child may have got something of it.
    assert run.state(1, 1) is StreamState.REHOMING
    assert run.rehome() >= {part(2)}
    assert states(run)[0] == "finished"


def test_an_undo_on_the_way_ends_it_and_the_children_open_again() -> None:
    run = read_once()
    ask(run, rewind(part(0)))
    run.commit_all()
    went_back(run)
    run.commit_all()
    again = CursorMove(part(0), NUMBER + 1, (), ((0, END),))
    run.feed(Instructed(MoveCursors(NUMBER + 1, (again,)), run.now_ms))
    run.commit_all()
    assert run.state(0) is StreamState.REHOMING
    run.rehome()
    run.rehome()
    assert states(run)[:3] == ["finished", "free", "finished"]
    assert {each.stream for each in run.join()} == {part(1, 0), part(2)}


def test_the_oldest_goes_first_and_one_at_a_time() -> None:
    run = read_once()
    ask(run, rewind(part(1, 1)), rewind(part(0)))
    run.commit_all()
    assert went_back(run).stream == part(0)
    run.commit_all()
    assert states(run) == ["free", "closed", "closed", "closed"]
    back = went_back(run)
    assert (back.stream, [each.stream for each in back.lanes]) == (part(1, 1), [part(2)])
    run.commit_all()
    # It is read once those before it are.
    assert states(run)[2] == "closed"
    assert run.saved[part(1, 1)].progress == Progress(4)
    assert run.leader.moving == {}


def test_the_next_leader_goes_on_with_what_was_begun() -> None:
    run = read_once(moves=(rewind(part(0)),))
    assert states(run) == ["finished", "closed", "closed", "closed"]
    run.commit_all()
    went_back(run)
    run.commit_all()
    assert states(run)[0] == "free"
    assert run.saved[part(0)].progress == Progress(4)


def test_what_a_leader_began_with_a_stream_whose_parents_went_on_is_not_rehomed_instead() -> None:
    # It was closed when it began, so it is stored as unfinished, at its end.
    older = stored(0, floor=END, finished=True)
    closed = stored(1, parents=(part(0),), floor=END, epoch=4)
    last = stored(2, parents=(part(1),), sealed=False)
    run = Run(older, closed, last, moves=(rewind(part(1)),))
    run.commit_all()
    assert run.rehomes == []
    assert went_back(run).stream == part(1)
    run.commit_all()
    assert run.state(1) is StreamState.FREE


def test_a_descendant_that_is_kept_for_its_holder_is_waited_for() -> None:
    streams = generations()
    kept = replace(streams[3], grant_epoch=5, session_id=session_of(ANN), borrower_id=ANN)
    run = Run(*streams[:3], kept, restarted=True, moves=(rewind(part(0)),))
    run.commit_all()
    assert (run.state(2), run.backs) == (StreamState.FREE, [])
    run.pass_ms(run.leader.timing.reserve_ms + 1)
    assert run.state(2) is StreamState.CLOSED
    run.commit_all()
    assert len(run.backs) == 1


def test_a_holder_that_comes_back_for_a_descendant_is_asked_for_it() -> None:
    streams = generations()
    kept = replace(streams[3], grant_epoch=5, session_id=session_of(ANN), borrower_id=ANN)
    run = Run(*streams[:3], kept, moves=(rewind(part(0)),))
    last = StreamReport(part(2), 5, Progress(1), 1, sent=1, queues=queues(part(2)))
    run.tell(LeaderWanted(ANN, 0, session_of(ANN), "ann", held=(last,)))
    assert run.state(2) is StreamState.REVOKING


def test_what_is_being_rehomed_arrives_before_anything_goes_back() -> None:
    streams = generations()
    streams[2] = stored(1, 1, parents=(part(0),), floor=END, epoch=2)
    run = Run(*streams)
    run.commit_all()
    assert run.state(1, 1) is StreamState.REHOMING
    ask(run, rewind(part(0)))
    run.commit_all()
    assert run.backs == []
    run.rehome()
    assert run.state(1, 1) is StreamState.CLOSED
    assert len(run.backs) == 1


@pytest.mark.parametrize("known_before", [False, True])
def test_a_cancelled_move_is_not_made_and_what_came_back_goes_on_again(
    known_before: bool,
) -> None:
    run = read_once(moves=(rewind(part(0), cancelled=True),) if known_before else ())
    if not known_before:
        ask(run, rewind(part(0)))
        run.feed(Instructed(CancelMoves(NUMBER), run.now_ms))
    run.commit_all()
    assert states(run)[0] == "finished"
    went_back(run)
    run.commit_all()
    assert run.state(0) is StreamState.REHOMING
    run.rehome()
    run.rehome()
    assert states(run)[:3] == ["finished", "free", "finished"]
    assert run.leader.streams[part(0)].progress == Progress(END)
    assert run.leader.moving == {}


def test_an_answer_of_before_counts_no_more() -> None:
    run = read_once()
    ask(run, rewind(part(0)))
    run.commit_all()
    asked = run.backs[-1]
    run.feed(WentBack(asked.stream, asked.grant_epoch - 1, (), run.now_ms))
    run.commit_all()
    assert states(run)[0] == "finished"


def test_while_streams_are_held_back_nothing_goes_back() -> None:
    run = read_once()
    run.feed(Hold(run.now_ms))
    ask(run, rewind(part(0)))
    run.commit_all()
    run.pass_ms(100)
    run.commit_all()
    assert (run.leader.holding.value, run.backs) == ("held", [])
    lanes = tuple((each.stream, each.queues, each.parents) for each in run.leader.streams.values())
    run.feed(LendAgain(run.now_ms, lanes))
    run.commit_all()
    assert len(run.backs) == 1
    run.feed(Hold(run.now_ms))
    run.commit_all()
    assert run.leader.holding.value == "taking_back"
    went_back(run)
    run.commit_all()
    run.pass_ms(100)
    run.commit_all()
    assert run.leader.holding.value == "held"


def test_where_the_topic_goes_nothing_is_waited_for() -> None:
    run = read_once()
    ask(run, rewind(part(0)))
    run.commit_all()
    gone = tuple(run.leader.streams)
    run.feed(StreamsChanged(run.now_ms, gone=gone))
    run.commit_all()
    assert (run.leader.moving, run.leader.barrier.back) == ({}, None)


def test_single_records_of_it_come_again_alone() -> None:
    run = read_once()
    ask(run, CursorMove(part(0), NUMBER, ((4, 6),), ()))
    run.commit_all()
    went_back(run)
    run.commit_all()
    [granted] = run.join()
    assert granted.progress == Progress(4, ((6, END),))

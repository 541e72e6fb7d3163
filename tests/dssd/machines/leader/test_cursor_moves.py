"""Laws of moves: what a move makes of progress, as sets of offsets."""

from hypothesis import given
from hypothesis import strategies as st

from dss_core.ids import StreamId
from dss_core.progress import Progress, Ranges, normalised
from dssd.machines.attempts import Attempts, Due, unacked_attempts
from dssd.machines.fate import Counts, Fate
from dssd.machines.leader.cursor_moves import all_of, make_move, moved
from dssd.machines.leader.events import CursorMove, MadeMove, StoredStream
from dssd.machines.leader.lent_stream import LentStream
from dssd.machines.start_point import OFFSET_MAX

STREAM = StreamId(1, 0)
END = 24
"""Of the stream."""

OFFSETS = st.sets(st.integers(0, END - 1))


def ranges_of(offsets: set[int]) -> Ranges:
    return normalised((offset, offset + 1) for offset in offsets)


def progress_of(offsets: set[int]) -> Progress:
    return Progress(0).with_acked(ranges_of(offsets))


def offsets_of(progress: Progress) -> set[int]:
    return {offset for part in all_of(progress) for offset in range(*part)}


def move_of(dropped: set[int], added: set[int], number: int = 7) -> CursorMove:
    return CursorMove(STREAM, number, ranges_of(dropped), ranges_of(added))


def known_of(counts: dict[int, int], acked: set[int]) -> Attempts:
    entries = ((offset, offset + 1, count) for offset, count in sorted(counts.items()))
    return unacked_attempts(entries, progress_of(acked))


KNOWN = st.dictionaries(st.integers(0, END - 1), st.integers(1, 3))


def stream_of(acked: set[int], frontier: int, counts: dict[int, int]) -> LentStream:
    known = known_of(counts, acked)
    rests = tuple((start, end, Due(count, 5)) for start, end, count in known)
    fate = Fate(known, known, rests, (), Counts(acked=len(acked)))
    start = max(frontier, progress_of(acked).floor)
    stored = StoredStream(STREAM, progress_of(acked), start, END, None, 3, attempts=known)
    lent = LentStream(stored)
    lent.fate = fate
    return lent


def count_at(entries: Attempts, offset: int) -> int:
    return sum(count for start, end, count in entries if start <= offset < end)


@given(OFFSETS, OFFSETS, OFFSETS)
def test_after_a_move_is_what_was_before_without_the_dropped_with_the_added(
    before: set[int], dropped: set[int], added: set[int]
) -> None:
    after = moved(progress_of(before), move_of(dropped, added))
    assert after == progress_of((before - dropped) | added)


@given(OFFSETS, st.integers(0, END), OFFSETS, OFFSETS)
def test_the_counts_still_add_up_to_what_progress_covers(
    before: set[int], frontier: int, dropped: set[int], added: set[int]
) -> None:
    lent = stream_of(before, frontier, {})
    lent.move = move_of(dropped, added)
    make_move(lent)
    assert sum(lent.fate.counts) == len(offsets_of(lent.progress))
    assert lent.fate.counts.acked == len(before)


@given(OFFSETS, st.integers(0, END), KNOWN, OFFSETS)
def test_where_nothing_is_reopened_all_stays_known_of_what_is_not_acknowledged(
    before: set[int], frontier: int, counts: dict[int, int], added: set[int]
) -> None:
    lent = stream_of(before, frontier, counts)
    known = lent.attempts, lent.fate.failures, lent.fate.doubts, lent.fate.rests
    frontier = lent.frontier
    lent.move = move_of(set(), added)
    make_move(lent)
    kept = lent.attempts, lent.fate.failures, lent.fate.doubts, lent.fate.rests
    *counted, rests = known
    unacked = [unacked_attempts(each, lent.progress) for each in counted]
    assert kept == (*unacked, unacked_attempts(rests, lent.progress))
    assert lent.frontier == max(frontier, lent.progress.floor)


@given(OFFSETS, st.integers(0, END), KNOWN, OFFSETS, OFFSETS)
def test_from_the_first_reopened_offset_on_all_comes_as_for_the_first_time(
    before: set[int], frontier: int, counts: dict[int, int], dropped: set[int], added: set[int]
) -> None:
    lent = stream_of(before, frontier, counts)
    known = lent.attempts
    lent.move = move_of(dropped, added)
    make_move(lent)
    after = (before - dropped) | added
    reopened = min(before - after, default=OFFSET_MAX)
    rests = tuple((start, end, due.at_ms) for start, end, due in lent.fate.rests)
    for entries in (lent.attempts, lent.fate.failures, lent.fate.doubts, rests):
        for offset in range(END):
            kept = count_at(known, offset) if offset < reopened and offset not in after else 0
            assert count_at(entries, offset) == kept
    assert lent.frontier <= max(reopened, lent.progress.floor)


@given(OFFSETS, st.integers(0, END), KNOWN, st.integers(0, END), OFFSETS, OFFSETS)
def test_whatever_may_have_been_handed_out_before_comes_marked(
    before: set[int],
    frontier: int,
    counts: dict[int, int],
    suspect_end: int,
    dropped: set[int],
    added: set[int],
) -> None:
    lent = stream_of(before, frontier, counts)
    lent.suspect_end = suspect_end
    seen = before | set(range(lent.frontier)) | set(range(suspect_end))
    seen |= {offset for offset in range(END) if count_at(lent.attempts, offset)}
    lent.move = move_of(dropped, added)
    make_move(lent)
    assert all(offset < lent.suspect_end for offset in seen)
    assert lent.record().marked_below == lent.suspect_end


@given(OFFSETS, OFFSETS, OFFSETS, OFFSETS)
def test_undo_is_what_was_before_and_what_was_acknowledged_since(
    before: set[int], dropped: set[int], added: set[int], since: set[int]
) -> None:
    lent = stream_of(before, 0, {})
    lent.move = move_of(dropped, added)
    make_move(lent)
    made = lent.ended_move
    assert isinstance(made, MadeMove)
    gave = offsets_of(made.after) - offsets_of(made.before)
    # What the operation covers is delivered to nobody, so nobody acknowledges it.
    acked_since = since - offsets_of(made.after)
    lent.progress = lent.progress.with_acked(ranges_of(acked_since))
    lent.move = move_of(gave, offsets_of(made.before), number=8)
    make_move(lent)
    assert offsets_of(lent.progress) == before | acked_since


@given(OFFSETS, st.integers(0, END), KNOWN, OFFSETS, OFFSETS)
def test_a_move_fences_all_of_before_and_names_itself(
    before: set[int], frontier: int, counts: dict[int, int], dropped: set[int], added: set[int]
) -> None:
    lent = stream_of(before, frontier, counts)
    lent.reserved, lent.session_id = True, b"s"
    lent.move = move_of(dropped, added)
    make_move(lent)
    assert (lent.grant_epoch, lent.moved_epoch, lent.cursor_generation) == (4, 4, 7)
    assert [lent.reserved, lent.session_id, lent.move] == [False, None, None]
    assert lent.ended_move == MadeMove(7, progress_of(before), lent.progress)
    assert lent.record().grant is not None


def test_without_a_move_nothing_changes() -> None:
    lent = stream_of({0, 1}, 5, {3: 2})
    known = lent.record()
    make_move(lent)
    assert lent.record() == known

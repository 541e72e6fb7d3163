"""What is out, by offset, against a dictionary."""

from hypothesis import given
from hypothesis import strategies as st

from dss_core.progress import normalised
from dssd.machines.delivery.outstanding import Outstanding, SentRange

TAKES = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=20)


def offsets(piece: SentRange) -> set[int]:
    return set(range(piece.start, piece.end))


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3), st.integers(1, 999))), TAKES)
def test_it_counts_what_is_out_and_gives_back_every_byte(
    runs: list[tuple[int, int, int]], takes: list[tuple[int, int]]
) -> None:
    out = Outstanding()
    expected: set[int] = set()
    at = size = 0
    for length, gap, bytes_ in runs:
        added = SentRange(at, at + length, bytes_)
        out.add(added)
        expected |= offsets(added)
        size += bytes_
        at += length + gap
    for start, length in takes:
        taken = out.take(start, start + length)
        found = set().union(*(offsets(piece) for piece in taken)) if taken else set()
        assert found == {offset for offset in expected if start <= offset < start + length}
        assert sum(piece.records for piece in taken) == len(found)
        size -= sum(piece.bytes for piece in taken)
        expected -= found
        assert (out.records, out.bytes) == (len(expected), size)
    rest = out.take_all()
    assert sum(piece.bytes for piece in rest) == size
    assert (out.records, out.bytes) == (0, 0)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3), st.integers(1, 999))), TAKES)
def test_many_ranges_are_taken_at_once_as_if_one_by_one(
    runs: list[tuple[int, int, int]], takes: list[tuple[int, int]]
) -> None:
    together, singly = Outstanding(), Outstanding()
    at = 0
    for number, (length, gap, bytes_) in enumerate(runs):
        for out in (together, singly):
            out.add(SentRange(at, at + length, bytes_, suspects_max=number % 2, again=number > 3))
        at += length + gap
    ranges = normalised((start, start + length) for start, length in takes)
    freed = together.take_among(ranges)
    taken = [sent for start, end in ranges for sent in singly.take(start, end)]
    for again in (False, True):
        records = sum(each.records for each in freed if each.again is again)
        assert records == sum(each.records for each in taken if each.again is again)
    assert (together.records, together.suspects) == (singly.records, singly.suspects)
    assert together.bytes + sum(each.bytes for each in freed) == sum(each[2] for each in runs)
    assert together.within(0, at) == singly.within(0, at)
    assert sum(sent.bytes for sent in together.take_all()) + sum(
        each.bytes for each in freed
    ) == sum(each[2] for each in runs)


def test_ranges_that_come_again_are_kept_in_order() -> None:
    out = Outstanding()
    out.add(SentRange(10, 20, 100))
    out.add(SentRange(0, 5, 50))
    assert [piece.start for piece in out.take_all()] == [0, 10]


def test_one_blamed_record_leaves_no_room_for_others() -> None:
    out = Outstanding()
    assert out.suspect_room(500) == 500
    out.add(SentRange(0, 1, 10, suspects_max=1))
    assert out.suspect_room(500) == 0

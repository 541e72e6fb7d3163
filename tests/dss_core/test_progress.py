"""Ranges and progress against plain sets of offsets."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dss_core.progress import (
    Progress,
    Ranges,
    clipped,
    complement,
    covers,
    normalised,
    runs_of,
    total,
    without,
)

END = 24
raw_ranges = st.lists(st.tuples(st.integers(0, END), st.integers(0, END)), max_size=8)
progresses = st.builds(
    lambda floor, acked: Progress(floor).with_acked(acked), st.integers(0, END), raw_ranges
)


def offsets_of(ranges: Ranges) -> set[int]:
    return {offset for start, end in ranges for offset in range(start, end)}


def acked_of(progress: Progress) -> set[int]:
    return set(range(progress.floor)) | offsets_of(progress.ranges)


@given(raw_ranges)
def test_normalised_ranges_hold_the_same_offsets_sorted_and_apart(
    ranges: list[tuple[int, int]],
) -> None:
    found = normalised(ranges)
    assert offsets_of(found) == offsets_of(tuple(ranges))
    assert all(start < end for start, end in found)
    assert all(one[1] < other[0] for one, other in pairwise(found))
    assert total(found) == len(offsets_of(found))


@given(raw_ranges, st.integers(0, END), st.integers(0, END))
def test_clipped_and_complement_divide_an_interval(
    ranges: list[tuple[int, int]], start: int, end: int
) -> None:
    found = normalised(ranges)
    inside, outside = clipped(found, start, end), complement(found, start, end)
    assert all(low < high for low, high in (*inside, *outside))
    assert offsets_of(inside) == offsets_of(found) & set(range(start, end))
    assert offsets_of(outside) == set(range(start, end)) - offsets_of(found)


@given(raw_ranges, st.integers(0, END))
def test_covers_is_membership(ranges: list[tuple[int, int]], offset: int) -> None:
    assert covers(tuple(ranges), offset) == (offset in offsets_of(tuple(ranges)))


@given(progresses, progresses)
def test_merging_is_the_union_and_a_least_upper_bound(one: Progress, other: Progress) -> None:
    merged = one.merged(other)
    assert acked_of(merged) == acked_of(one) | acked_of(other)
    assert merged == other.merged(one) == merged.merged(one)


@given(progresses, raw_ranges)
def test_acking_adds_offsets_and_keeps_the_canonical_form(
    progress: Progress, ranges: list[tuple[int, int]]
) -> None:
    after = progress.with_acked(ranges)
    assert acked_of(after) == acked_of(progress) | offsets_of(tuple(ranges))
    assert after.floor >= progress.floor
    assert normalised(after.ranges) == after.ranges
    assert all(start > after.floor for start, _ in after.ranges)


@given(progresses)
def test_unacked_is_what_is_left(progress: Progress) -> None:
    assert offsets_of(progress.unacked(END)) == set(range(END)) - acked_of(progress)
    assert all(progress.is_acked(offset) == (offset in acked_of(progress)) for offset in range(END))
    for offset in range(END):
        left = set(range(offset, 3 * END)) - acked_of(progress)
        assert progress.first_unacked(offset) == min(left)
    assert progress.acked_count() == len(acked_of(progress))
    assert progress.acked_above_floor() == len(acked_of(progress)) - progress.floor


@given(st.sets(st.integers(0, 400)), raw_ranges, st.integers(0, 400))
def test_few_ranges_join_many_as_if_all_were_sorted_anew(
    known: set[int], few: list[tuple[int, int]], floor: int
) -> None:
    before = Progress(floor).with_acked((offset, offset + 1) for offset in known)
    moved = [(start + 200, end + 200) for start, end in few]
    after = before.with_acked(moved)
    assert acked_of(after) == acked_of(before) | offsets_of(tuple(moved))
    assert normalised(after.ranges) == after.ranges
    assert all(start > after.floor for start, _ in after.ranges)


@given(st.sets(st.integers(0, 60)))
def test_ascending_offsets_become_ranges(offsets: set[int]) -> None:
    assert runs_of(sorted(offsets)) == normalised((at, at + 1) for at in offsets)


@given(raw_ranges, raw_ranges)
def test_what_others_do_not_cover_is_left(
    ranges: list[tuple[int, int]], gone: list[tuple[int, int]]
) -> None:
    left = without(normalised(ranges), normalised(gone))
    assert offsets_of(left) == offsets_of(normalised(ranges)) - offsets_of(normalised(gone))
    assert all(start < end for start, end in left)
    assert list(left) == sorted(left)

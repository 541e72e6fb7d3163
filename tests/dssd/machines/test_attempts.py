from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dss_core.progress import Progress
from dssd.machines.attempts import Attempts, merged_attempts, unacked_attempts

COUNTS = st.dictionaries(st.integers(0, 30), st.integers(1, 4))
PROGRESS = st.tuples(
    st.integers(0, 30), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)))
).map(lambda made: Progress(made[0]).with_acked(made[1]))


def runs(counts: dict[int, int]) -> Attempts:
    return unacked_attempts(
        [(offset, offset + 1, counts[offset]) for offset in sorted(counts)], Progress(0)
    )


def counts(attempts: Attempts) -> dict[int, int]:
    return {offset: count for start, end, count in attempts for offset in range(start, end)}


@given(COUNTS, COUNTS, PROGRESS)
def test_merging_takes_the_higher_count_of_each_unacked_record(
    mine: dict[int, int], other: dict[int, int], progress: Progress
) -> None:
    merged = merged_attempts(runs(mine), runs(other), progress)
    expected = {
        offset: max(mine.get(offset, 0), other.get(offset, 0))
        for offset in {*mine, *other}
        if not progress.is_acked(offset)
    }
    assert counts(merged) == expected


@given(COUNTS)
def test_neighbours_of_one_count_are_one_entry(given_counts: dict[int, int]) -> None:
    attempts = runs(given_counts)
    assert counts(attempts) == given_counts
    assert not any(
        left[1] == right[0] and left[2] == right[2] for left, right in pairwise(attempts)
    )

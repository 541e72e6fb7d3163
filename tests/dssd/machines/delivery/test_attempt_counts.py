"""How many attempts each record has had."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dssd.machines.delivery.attempt_counts import AttemptCounts

SPANS = st.tuples(st.integers(0, 30), st.integers(1, 10)).map(lambda s: (s[0], s[0] + s[1]))


@given(st.lists(st.tuples(st.booleans(), SPANS)), st.integers(0, 40), SPANS)
def test_attempts_agree_with_a_count_per_offset(
    actions: list[tuple[bool, tuple[int, int]]], frontier: int, asked: tuple[int, int]
) -> None:
    attempts = AttemptCounts()
    counts = {offset: int(offset < frontier) for offset in range(50)}
    for charge, (start, end) in actions:
        if charge:
            attempts.charge(start, end, frontier)
        else:
            attempts.forget(start, end)
        for offset in range(start, end):
            counts[offset] = counts[offset] + 1 if charge else int(offset < frontier)
    segments = attempts.segments(*asked, frontier)
    assert [segment[0] for segment in segments[1:]] == [segment[1] for segment in segments[:-1]]
    assert (segments[0][0], segments[-1][1]) == asked
    for start, end, count in segments:
        assert {counts[offset] for offset in range(start, end)} == {count}
    entries = attempts.entries()
    assert all(start < end for start, end, _ in entries)
    assert all(a[1] <= b[0] for a, b in pairwise(entries))

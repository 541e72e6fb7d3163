"""The keys of what is out."""

from array import array
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_core.progress import Range, clipped
from dssd.machines.lanes.sent_keys import PIECES_MIN, SentKeys


class Out:
    """What is out."""

    def __init__(self, *ranges: Range) -> None:
        self.ranges = ranges

    def within(self, start: int, end: int) -> list[Range]:
        return list(clipped(self.ranges, start, end))


def test_what_has_one_of_the_keys_is_found_where_it_is_out() -> None:
    out = Out((2, 4), (6, 9))
    keys = SentKeys(out.within)
    keys.note(0, array("Q", [1, 2, 1, 2]))
    keys.note(4, [1, 1, 1, 2, 0])
    assert list(keys.out_of({1}, 0, 9)) == [(2, 1), (6, 1)]
    assert list(keys.out_of({1, 2}, 3, 8)) == [(3, 2), (6, 1), (7, 2)]
    assert keys.of(8) == 0


def test_a_piece_that_was_read_from_within_another_changes_nothing() -> None:
    keys = SentKeys(Out((0, 6)).within)
    keys.note(0, [1, 2, 3, 4])
    keys.note(2, [3])
    keys.note(0, [1, 2])
    keys.note(4, [5, 6])
    assert [keys.of(at) for at in range(6)] == [1, 2, 3, 4, 5, 6]
    assert list(keys.out_of({1, 2, 3, 4, 5, 6}, 0, 6)) == [(at, at + 1) for at in range(6)]


def test_pieces_of_which_nothing_is_out_are_forgotten() -> None:
    out = Out((5, 6))
    keys = SentKeys(out.within)
    for base in range(4 * PIECES_MIN):
        keys.note(base, [base])
    assert keys.of(5) == 5
    with pytest.raises(KeyError):
        keys.of(PIECES_MIN - 1)


@given(st.lists(st.integers(1, 3), max_size=40), st.data())
def test_it_finds_what_a_look_at_each_record_finds(keys: list[int], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(keys)))) | {0, len(keys)})
    sent = SentKeys(Out((0, len(keys))).within)
    for start, end in pairwise(cuts):
        sent.note(start, keys[start:end])
    wanted = data.draw(st.sets(st.integers(1, 3)))
    found = [(at, key) for at, key in enumerate(keys) if key in wanted]
    assert list(sent.out_of(wanted, 0, len(keys))) == found

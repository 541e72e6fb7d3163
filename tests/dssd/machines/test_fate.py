"""What became of records is merged the same in any order."""

from hypothesis import given
from hypothesis import strategies as st

from dss_core.progress import Progress, normalised
from dssd.limits import DAMAGED_RANGES_MAX
from dssd.machines.attempts import Due
from dssd.machines.fate import NO_FATE, Counts, Fate

OFFSETS = st.integers(0, 20)
ENTRIES = st.lists(st.tuples(OFFSETS, st.integers(1, 3)), max_size=4, unique_by=lambda e: e[0]).map(
    lambda found: tuple((at, at + 1, count) for at, count in sorted(found))
)
RESTS = ENTRIES.map(lambda found: tuple((*at, Due(count, 4 - count)) for *at, count in found))
RANGES = st.lists(st.tuples(OFFSETS, OFFSETS), max_size=3).map(normalised)
COUNTS = st.builds(Counts, OFFSETS, OFFSETS, OFFSETS, OFFSETS)
FATES = st.builds(Fate, ENTRIES, ENTRIES, RESTS, RANGES, COUNTS)
NOTHING = Progress(0)


def flat(fate: Fate) -> tuple[object, ...]:
    """The fate with one entry an offset: neighbours of one count may be joined or not."""
    each = [
        {(at, count) for start, end, count in entries for at in range(start, end)}
        for entries in (fate.failures, fate.doubts, fate.rests)
    ]
    return (*map(frozenset, each), fate.damaged, fate.counts)


@given(FATES, FATES, FATES)
def test_the_order_of_reports_does_not_matter(one: Fate, two: Fate, three: Fate) -> None:
    forward = one.merged(two, NOTHING).merged(three, NOTHING)
    backward = three.merged(one.merged(two, NOTHING), NOTHING).merged(one, NOTHING)
    assert flat(forward) == flat(backward)


def test_what_is_acknowledged_neither_failed_nor_rests() -> None:
    known = Fate(failures=((0, 4, 2),), rests=((1, 3, Due(99, 1)),))
    assert known.merged(NO_FATE, Progress(2)) == Fate(
        failures=((2, 4, 2),), rests=((2, 3, Due(99, 1)),)
    )


def test_the_later_time_of_a_rest_and_the_higher_counts_win() -> None:
    one = Fate(rests=((1, 2, Due(50, 9)),), counts=Counts(acked=5, lost=1))
    two = Fate(rests=((1, 2, Due(70, 3)),), counts=Counts(acked=3, lost=2))
    merged = one.merged(two, NOTHING)
    assert merged.rests == ((1, 2, Due(70, 3)),)
    assert merged.counts == Counts(acked=5, lost=2)


def test_of_damaged_ranges_the_newest_are_named() -> None:
    many = tuple((2 * at, 2 * at + 1) for at in range(DAMAGED_RANGES_MAX))
    merged = Fate(damaged=many).merged(Fate(damaged=((900, 901),)), NOTHING)
    assert merged.damaged == (*many[1:], (900, 901))

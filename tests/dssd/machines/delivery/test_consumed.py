"""Each offset that a group is done with is counted once, as one kind."""

from hypothesis import given
from hypothesis import strategies as st

from dss_core.progress import Progress, Ranges, normalised, total
from dssd.limits import DAMAGED_RANGES_MAX
from dssd.machines.delivery.consumed import Consumed
from dssd.machines.delivery.events import ChunkRead
from dssd.machines.fate import NO_FATE, Counts

OFFSETS = st.integers(0, 40)
RANGES = st.lists(st.tuples(OFFSETS, OFFSETS), max_size=4).map(normalised)


def chunk(lost: Ranges = (), damaged: Ranges = ()) -> ChunkRead:
    return ChunkRead(1, 0, b"", (), 0, 40, 40, lost, damaged)


def test_what_a_chunk_leaves_out_is_counted_as_what_it_says() -> None:
    done = Consumed(Progress(0), NO_FATE)
    done.pass_by(chunk(((0, 2),), ((2, 5),)), ((0, 9),))
    assert done.counts == Counts(filtered=4, lost=2, damaged=3)
    assert done.damaged == ((2, 5),)
    assert done.progress == Progress(9)


def test_the_newest_damaged_ranges_are_kept() -> None:
    done = Consumed(Progress(0), NO_FATE)
    ranges = tuple((2 * at, 2 * at + 1) for at in range(DAMAGED_RANGES_MAX + 3))
    done.pass_by(chunk(damaged=ranges), ranges)
    assert done.damaged == ranges[3:]
    assert done.counts.damaged == len(ranges)


@given(st.lists(st.tuples(st.sampled_from(["ack", "reject", "pass_by"]), RANGES, RANGES, RANGES)))
def test_the_counts_are_together_what_progress_covers(
    steps: list[tuple[str, Ranges, Ranges, Ranges]],
) -> None:
    done = Consumed(Progress(0), NO_FATE)
    for kind, ranges, lost, damaged in steps:
        if kind == "pass_by":
            done.pass_by(chunk(lost, damaged), ranges)
        elif kind == "ack":
            done.ack(ranges)
        else:
            done.reject(ranges)
        assert sum(done.counts) == done.progress.floor + total(done.progress.ranges)

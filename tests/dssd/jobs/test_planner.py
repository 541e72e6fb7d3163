"""How what a job reads is cut into chunks."""

from hypothesis import given
from hypothesis import strategies as st

from dss_core.changes import SourceRange
from dssd.jobs.planner import Measured, cut


def measured(topic: int, partition: int, start: int, end: int, size: int) -> Measured:
    return Measured(SourceRange(f"t/{topic}/{partition}", topic, partition, start, end), size)


def test_chunks_of_an_older_storage_topic_come_before_those_of_a_newer_one() -> None:
    chunks = list(cut([measured(1, 0, 0, 10, 100), measured(2, 0, 0, 10, 100)], 50))
    assert [chunk.input.ranges[0].storage_topic_id for chunk in chunks] == [1, 1, 2, 2]


def test_streams_without_a_record_to_read_make_no_chunk() -> None:
    assert list(cut([measured(1, 0, 5, 5, 0)], 50)) == []


RANGES = st.lists(
    st.tuples(st.integers(0, 1_000), st.integers(0, 300), st.integers(0, 5_000)), max_size=5
)


@given(RANGES, st.integers(1, 2_000))
def test_each_offset_is_in_one_chunk_and_later_chunks_have_later_offsets(
    drawn: list[tuple[int, int, int]], chunk_bytes: int
) -> None:
    every = [
        measured(1, partition, start, start + length, size)
        for partition, (start, length, size) in enumerate(drawn)
    ]
    ends = {one.range.partition: one.range.start for one in every}
    for chunk in cut(every, chunk_bytes):
        assert chunk.records == sum(each.end - each.start for each in chunk.input.ranges)
        for each in chunk.input.ranges:
            assert each.start == ends[each.partition] < each.end
            ends[each.partition] = each.end
    assert ends == {one.range.partition: one.range.end for one in every}

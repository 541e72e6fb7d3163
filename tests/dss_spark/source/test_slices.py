from hypothesis import given
from hypothesis import strategies as st

from dss_client.job_values import SourceRange
from dss_spark.source.slices import Sized, sliced

ranges = st.lists(
    st.builds(
        lambda partition, start, records, size: Sized(
            SourceRange(f"t/0/{partition}", 1, partition, start, start + records), size
        ),
        st.integers(0, 9),
        st.integers(0, 1_000),
        st.integers(0, 5_000),
        st.integers(0, 100_000),
    ),
    max_size=12,
)


@given(ranges, st.integers(1_000, 50_000))
def test_each_offset_is_in_one_slice_in_its_order(given_: list[Sized], slice_bytes: int) -> None:
    found = [part for slice_ in sliced(given_, slice_bytes) for part in slice_]
    assert all(part.start < part.end for part in found)
    joined: list[SourceRange] = []
    for part in found:
        last = joined[-1] if joined else None
        if last is not None and last.partition == part.partition and last.end == part.start:
            joined[-1] = SourceRange(last.stream, 1, last.partition, last.start, part.end)
        else:
            joined.append(part)
    whole = [each.range for each in given_ if each.range.start < each.range.end]
    assert sum(each.end - each.start for each in joined) == sum(e.end - e.start for e in whole)
    assert [(each.partition, each.start) for each in joined if each in whole] == [
        (each.partition, each.start) for each in whole if each in joined
    ]


@given(ranges, st.integers(1_000, 50_000))
def test_a_slice_is_hardly_larger_than_asked_for(given_: list[Sized], slice_bytes: int) -> None:
    total = sum(each.bytes for each in given_ if each.range.start < each.range.end)
    slices = sliced(given_, slice_bytes)
    assert len(slices) <= 2 * (total // slice_bytes) + 1 + len(given_)
    if total <= slice_bytes:
        assert len(slices) <= 1

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dss_core.decode import decode
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dssd.log.settings import LogSettings

Bench = Any
STREAM = StreamId(7, 0)


async def matched(bench: Bench, text: str, bytes_max: int = 1 << 16) -> dict[int, str]:
    """Offsets and subjects that a filter gives, read to the end."""
    matching = TopicFilter.parse(text)
    found: dict[int, str] = {}
    offset, end = 0, bench.log.bounds(STREAM).end
    while offset < end:
        chunk = await bench.log.read(STREAM, offset, bytes_max=bytes_max, matching=matching)
        assert chunk.next > offset
        assert chunk.damaged == ()
        assert chunk.at_end == (chunk.next >= end)
        if chunk.frames:
            whole = decode(chunk.frames)
            assert list(whole.offsets) == list(range(chunk.base, chunk.base + chunk.records))
            batch = decode(chunk.frames, chunk.mask)
            found |= dict(zip(batch.offsets, batch.subjects, strict=True))
        offset = chunk.next
    return found


async def test_frames_without_a_match_are_left_out(bench: Bench) -> None:
    await bench.put(b"1", subjects="eu/1")
    await bench.put(b"2", subjects="us/1")
    await bench.put(b"3", subjects="eu/2")
    for _ in range(2):
        assert await matched(bench, "us/+") == {1: "us/1"}
        assert await matched(bench, "asia/#") == {}
        await bench.reopen()


async def test_a_partial_match_is_a_mask(bench: Bench) -> None:
    await bench.put(b"1", b"2", b"3", subjects=["eu", "us", "eu"])
    for _ in range(2):
        chunk = await bench.log.read(STREAM, 0, bytes_max=1_000, matching=TopicFilter.parse("us"))
        assert (chunk.records, chunk.mask) == (3, ((0, 1), (2, 3)))
        await bench.reopen()


async def test_small_frames_between_two_matches_are_included_masked(bench: Bench) -> None:
    for number in range(10):
        await bench.put(b"x", subjects="eu" if number % 2 else "us")
    for _ in range(2):
        chunk = await bench.log.read(STREAM, 0, bytes_max=1 << 16, matching=TopicFilter.parse("us"))
        assert (chunk.base, chunk.records, chunk.next) == (0, 9, 10)
        assert chunk.mask == ((1, 2), (3, 4), (5, 6), (7, 8))
        await bench.reopen()


async def test_large_frames_between_two_matches_end_the_answer(bench: Bench) -> None:
    await bench.put(b"x", subjects="us")
    await bench.put(b"x" * 100_000, subjects="eu")
    await bench.put(b"x", subjects="us")
    for _ in range(2):
        chunk = await bench.log.read(STREAM, 0, bytes_max=1 << 20, matching=TopicFilter.parse("us"))
        assert (chunk.base, chunk.records, chunk.next) == (0, 1, 2)
        assert await matched(bench, "us") == {0: "us", 2: "us"}
        await bench.reopen()


async def test_a_filter_without_a_match_reads_under_five_percent(bench: Bench) -> None:
    total = 0
    for number in range(40):
        await bench.put(*[b"x" * 100] * 1_000, subjects=[f"eu/{number}"] * 1_000)
    await bench.reopen()
    total = bench.log.bounds(STREAM).bytes
    before = bench.log.bytes_read
    assert await matched(bench, "us/#") == {}
    assert bench.log.bytes_read - before < total * 0.05


async def test_a_fetch_by_time_reads_at_most_two_index_blocks(bench: Bench) -> None:
    for number in range(300):
        bench.now_us = 1_000_000 + number
        await bench.put(b"x", partition=number % 2)
    await bench.roll()
    bench.now_us += 1
    await bench.put(b"later")
    await bench.reopen()
    for number in (0, 77, 150, 299):
        await bench.reopen()
        offset = await bench.log.locate(STREAM, 1_000_000 + number)
        assert offset == (number + 1) // 2
        assert bench.log.index_blocks_read <= 2


async def test_a_subject_table_larger_than_a_head_is_read_whole(bench: Bench) -> None:
    subjects = [f"eu/{'x' * 200}/{number}" for number in range(100)]
    await bench.put(*[b"x"] * 100, subjects=subjects)
    for _ in range(2):
        assert await matched(bench, "eu/+/77") == {77: subjects[77]}
        await bench.reopen()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    frames=st.lists(
        st.lists(st.sampled_from(["eu", "us", "us/x", "asia"]), min_size=1, max_size=4),
        min_size=1,
        max_size=12,
    ),
    filter_text=st.sampled_from(["us", "us/#", "#", "+", "eu", "none"]),
    bytes_max=st.sampled_from([1, 400, 1 << 16]),
    from_disk=st.booleans(),
)
def test_a_filter_gives_exactly_the_records_that_it_matches(
    run_log: Callable[..., object],
    frames: list[list[str]],
    filter_text: str,
    bytes_max: int,
    from_disk: bool,
) -> None:
    async def story(bench: Bench) -> dict[int, str]:
        for subjects in frames:
            await bench.put(*[b"x"] * len(subjects), subjects=subjects)
        if from_disk:
            await bench.reopen()
        return await matched(bench, filter_text, bytes_max)

    everything = [subject for subjects in frames for subject in subjects]
    wanted = TopicFilter.parse(filter_text)
    expected = {n: subject for n, subject in enumerate(everything) if wanted.matches(subject)}
    assert run_log(story, LogSettings(run_bytes_max=300, read_loop_us=60_000_000)) == expected

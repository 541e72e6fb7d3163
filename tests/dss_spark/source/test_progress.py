import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_core.errors import IllegalArgument, OffsetOutOfRange, StreamNotFound
from dss_spark.source.progress import (
    KeptStream,
    Place,
    Progress,
    next_end,
    progress_from_json,
    progress_to_json,
    ranges_between,
)


def kept(ordinal: int, *bounds: tuple[int, int], sealed: bool = False) -> list[KeptStream]:
    """The streams of one storage topic."""
    return [
        KeptStream(f"t/{ordinal}/{at}", ordinal, 10 + ordinal, start, end, 0, sealed)
        for at, (start, end) in enumerate(bounds)
    ]


def at(ordinal: int, *offsets: int) -> Progress:
    return {
        f"t/{ordinal}/{partition}": Place(10 + ordinal, offset)
        for partition, offset in enumerate(offsets)
    }


def test_a_batch_takes_what_is_there() -> None:
    assert next_end(at(0, 3, 0), kept(0, (0, 5), (0, 2))) == at(0, 5, 2)
    assert next_end(at(0, 5, 2), kept(0, (0, 5), (0, 2))) == at(0, 5, 2)


def test_a_bounded_batch_takes_a_share_of_every_stream() -> None:
    found = next_end(at(0, 0, 0, 0), kept(0, (0, 60), (0, 30), (0, 10)), records_max=10)
    assert found == at(0, 6, 3, 1)
    assert next_end(at(0, 0, 0), kept(0, (0, 9), (0, 9)), records_max=1) == at(0, 1, 0)


def test_a_newer_storage_topic_waits_until_the_older_is_read_and_sealed() -> None:
    older, newer = kept(0, (0, 5), (0, 2)), kept(1, (0, 4))
    sealed = [replace(each, sealed=True) for each in older]
    assert next_end(at(0, 4, 2), [*sealed, *newer]) == at(0, 5, 2)
    assert next_end(at(0, 5, 2), [*older, *newer]) == at(0, 5, 2)
    behind = next_end(at(0, 5, 2), [*sealed, *newer])
    assert behind == {**at(0, 5, 2), **at(1, 4)}
    [only] = ranges_between(at(0, 5, 2), behind, [*sealed, *newer])
    assert (only.stream, only.storage_topic_id, only.start, only.end) == ("t/1/0", 11, 0, 4)


def test_what_is_not_kept_any_more_is_an_error_unless_losses_are_allowed() -> None:
    streams = kept(0, (4, 9))
    with pytest.raises(OffsetOutOfRange):
        next_end(at(0, 3), streams)
    end = next_end(at(0, 3), streams, fail_on_loss=False, records_max=2)
    assert end == at(0, 6)
    [part] = ranges_between(at(0, 3), end, streams, fail_on_loss=False)
    assert (part.start, part.end) == (4, 6)
    # A stream that nobody had begun is to be read from its first offset on.
    with pytest.raises(OffsetOutOfRange):
        next_end({}, streams)


def test_a_log_that_ends_before_what_was_read_is_an_error_in_any_case() -> None:
    with pytest.raises(OffsetOutOfRange):
        next_end(at(0, 9), kept(0, (0, 5)), fail_on_loss=False)


def test_another_topic_of_the_same_name_is_not_taken_for_it() -> None:
    other = [replace(each, storage_topic_id=99) for each in kept(0, (0, 5))]
    with pytest.raises(StreamNotFound):
        next_end(at(0, 3), other)
    with pytest.raises(StreamNotFound):
        next_end(at(0, 3, 3), kept(0, (0, 5)))
    end = next_end(at(0, 3), other, fail_on_loss=False)
    [part] = ranges_between(at(0, 3), end, other, fail_on_loss=False)
    assert (part.storage_topic_id, part.start, part.end) == (99, 0, 5)


def test_an_old_storage_topic_that_was_read_may_be_gone() -> None:
    newer = kept(1, (0, 9))
    progress = {**at(0, 5, 9), **at(1, 3)}
    end = next_end(progress, newer)
    assert end == {**at(0, 5, 9), **at(1, 9)}
    [part] = ranges_between(progress, end, newer)
    assert (part.stream, part.start, part.end) == ("t/1/0", 3, 9)
    # Whether all of it was read, nobody can tell where no newer one was begun.
    with pytest.raises(StreamNotFound):
        next_end(at(0, 5), newer)


def test_nothing_behind_a_target_is_read() -> None:
    streams = [*kept(0, (0, 5), (0, 9), sealed=True), *kept(1, (0, 9))]
    targets = {**at(0, 5, 9), **at(1, 3)}
    first = next_end(at(0, 0, 0), streams, targets=targets)
    assert first == at(0, 5, 9)
    second = next_end(first, streams, targets=targets)
    assert second == targets
    assert next_end(second, streams, targets=targets) == second
    assert next_end(first, streams, targets=at(0, 5, 9)) == first


def test_offsets_come_back_from_a_checkpoint_in_one_order() -> None:
    progress = {**at(1, 4), **at(0, 7, 8)}
    text = json.dumps(progress_to_json(progress))
    assert progress_from_json(json.loads(text)) == progress
    assert text == json.dumps(progress_to_json(dict(reversed(progress.items()))))
    with pytest.raises(IllegalArgument):
        progress_from_json({"t/0/0": {"offset": 3}})


lengths = st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=4), min_size=1, max_size=3)


@given(lengths, st.integers(1, 30))
def test_batches_cover_every_offset_once_and_keep_older_ones_first(
    topic: Sequence[Sequence[int]], records_max: int
) -> None:
    streams = [
        each
        for ordinal, ends in enumerate(topic)
        for each in kept(ordinal, *((0, end) for end in ends), sealed=ordinal < len(topic) - 1)
    ]
    progress: Progress = at(0, *(0 for _ in topic[0]))
    read: dict[str, list[int]] = {each.name: [] for each in streams}
    newest = 0
    while (end := next_end(progress, streams, records_max=records_max)) != progress:
        batch = ranges_between(progress, end, streams)
        assert 0 < sum(part.end - part.start for part in batch) <= records_max
        [ordinal] = {part.stream.split("/")[1] for part in batch}
        assert int(ordinal) >= newest
        newest = int(ordinal)
        for part in batch:
            read[part.stream] += range(part.start, part.end)
        progress = end
    assert read == {each.name: list(range(each.end)) for each in streams}

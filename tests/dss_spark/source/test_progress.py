import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_core.errors import IllegalArgument, OffsetOutOfRange, StreamNotFound
from dss_spark.source.progress import (
    KeptStream,
    Offsets,
    Place,
    Progress,
    beginning,
    next_end,
    offsets_from_json,
    offsets_to_json,
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
    assert next_end(at(0, 4, 2), [*sealed, *newer]) == done(0, 5, 2)
    assert next_end(at(0, 5, 2), [*older, *newer]) == at(0, 5, 2)
    behind = next_end(at(0, 5, 2), [*sealed, *newer])
    assert behind == {**done(0, 5, 2), **at(1, 4)}
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


def done(ordinal: int, *offsets: int) -> Progress:
    """Streams that were read to where they were sealed."""
    return {name: place._replace(is_end=True) for name, place in at(ordinal, *offsets).items()}


def test_an_old_storage_topic_that_was_read_to_its_end_may_be_gone() -> None:
    newer = kept(1, (0, 9))
    end = next_end(done(0, 5, 9), newer)
    assert end == {**done(0, 5, 9), **at(1, 9)}
    [part] = ranges_between(done(0, 5, 9), end, newer)
    assert (part.stream, part.start, part.end) == ("t/1/0", 0, 9)


def test_one_that_was_not_may_be_gone_only_where_losses_are_allowed() -> None:
    newer = kept(1, (0, 9))
    # A query that had not come to the newer one knows of it from its beginning all the same.
    for unread in (at(0, 5), {**at(0, 5), **at(1, 0)}, {**at(0, 5), **at(1, 3)}):
        with pytest.raises(StreamNotFound):
            next_end(unread, newer)
        assert next_end(unread, newer, fail_on_loss=False) == {**at(0, 5), **at(1, 9)}


def test_that_a_stream_was_read_to_its_end_is_kept_before_it_may_be_gone() -> None:
    older = kept(0, (0, 5), (0, 2), sealed=True)
    newer = kept(1, (0, 0))
    sealed_since = next_end(at(0, 5, 2), [*older, *newer])
    assert sealed_since == done(0, 5, 2)
    assert ranges_between(at(0, 5, 2), sealed_since, [*older, *newer]) == []
    assert next_end(sealed_since, [*older, *newer]) == sealed_since
    assert next_end(sealed_since, newer) == sealed_since
    # What losses are allowed for is the same.
    assert next_end(at(0, 5, 2), [*older, *newer], fail_on_loss=False) == done(0, 5, 2)


def test_a_query_begins_with_streams_that_take_records_or_did() -> None:
    older, newer = kept(0, (0, 5), sealed=True), kept(1, (0, 4))
    located = {**at(0, 5), **at(1, 2), **at(2, 0)}
    assert beginning(located, [*older, *newer]) == {**done(0, 5), **at(1, 2)}


def test_nothing_behind_a_target_is_read() -> None:
    streams = [*kept(0, (0, 5), (0, 9), sealed=True), *kept(1, (0, 9))]
    targets = {**at(0, 5, 9), **at(1, 3)}
    first = next_end(at(0, 0, 0), streams, targets=targets)
    assert first == done(0, 5, 9)
    second = next_end(first, streams, targets=targets)
    assert second == {**done(0, 5, 9), **at(1, 3)}
    assert next_end(second, streams, targets=targets) == second
    assert next_end(first, streams, targets=at(0, 5, 9)) == first


def test_offsets_come_back_from_a_checkpoint_in_one_order() -> None:
    progress = {**at(1, 4), **done(0, 7, 8)}
    text = json.dumps(offsets_to_json(Offsets(progress, "ab")))
    assert offsets_from_json(json.loads(text)) == (progress, "ab")
    backwards = Offsets(dict(reversed(progress.items())), "ab")
    assert text == json.dumps(offsets_to_json(backwards))
    # As an older version wrote it.
    said = {"t/0/0": {"storage_topic": 10, "offset": 7}}
    assert offsets_from_json(said) == (at(0, 7), "")
    for broken in ({"t/0/0": {"offset": 3}}, {"t/0/0": 3}):
        with pytest.raises(IllegalArgument):
            offsets_from_json(broken)


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
    progress = beginning({each.name: Place(each.storage_topic_id, 0) for each in streams}, streams)
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

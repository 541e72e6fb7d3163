"""Topics and the rows they are read from and written to."""

import pytest

from dss_core.filters import TopicFilter
from dss_core.routing import Router
from dssd.log.segment.rows import parse_starts
from dssd.store.rows import StorageTopicRow
from dssd.topics.model import StorageTopic, Topic


@pytest.mark.parametrize("ends", [None, "7,0,9"])
def test_a_storage_topic_that_is_written_again_keeps_its_low_watermarks(ends: str | None) -> None:
    row = StorageTopicRow(5, 1, 6, 3, 1, ends, "4,0,9")
    assert StorageTopic.from_row(row).to_row(5, parse_starts(row)) == row


def test_a_new_storage_topic_holds_nothing() -> None:
    made = StorageTopic(6, 0, partitions=2, factor=1, ends=None)
    assert made.to_row(5, [0, 0]) == StorageTopicRow(5, 0, 6, 2, 1, None, "0,0")


def test_low_watermarks_are_those_of_all_partitions() -> None:
    made = StorageTopic(6, 0, partitions=2, factor=1, ends=None)
    with pytest.raises(AssertionError):
        made.to_row(5, [3])


def topic(topic_epoch: int, produce_ordinal: int, *storage_topic_ids: int) -> Topic:
    parts = tuple(
        StorageTopic(number, ordinal, partitions=1, factor=1, ends=None)
        for ordinal, number in enumerate(storage_topic_ids)
    )
    patterns = (TopicFilter.parse("t/#"),)
    epoch, ordinal = topic_epoch, produce_ordinal
    return Topic(1, "t", patterns, Router.BLOCK, "sync", epoch, ordinal, parts, None, None, 0)


@pytest.mark.parametrize(
    ("grown", "topic_epoch", "ordinal"),
    [
        # The epochs of storage topics are their ids; the third of these is not in use yet.
        (topic(9, 1, 4, 9, 12), 9, 1),
        (topic(9, 1, 4, 9, 12), 4, 0),
        (topic(9, 1, 4, 9, 12), 5, None),
        # An older version of the daemon began at 1.
        (topic(9, 1, 4, 9), 1, 0),
        # Whatever the epoch is, there was no other.
        (topic(8, 0, 4), 3, 0),
        # Raised in another way: nobody can tell.
        (topic(10, 1, 4, 9), 4, None),
    ],
)
def test_an_epoch_tells_where_its_frames_were_stored(
    grown: Topic, topic_epoch: int, ordinal: int | None
) -> None:
    part = grown.produced_at(topic_epoch)
    assert (None if part is None else part.ordinal) == ordinal

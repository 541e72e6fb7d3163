"""Which storage topics count where an ordered group is cut into shards."""

from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dss_core.routing import Router
from dssd.leaders.slices import new_span
from dssd.topics.model import StorageTopic, Topic

FIRST = 3
"""The ordinal of the oldest storage topic that is still there."""


def topic() -> Topic:
    """Two storage topics were collected, one is sealed at 5 in each stream, one takes records, and
    one waits for its switch."""
    parts = (
        StorageTopic(10, FIRST, 2, 1, (5, 5)),
        StorageTopic(11, FIRST + 1, 4, 2, None),
        StorageTopic(12, FIRST + 2, 8, 4, None),
    )
    patterns = (TopicFilter.parse("orders/#"),)
    return Topic(1, "orders", patterns, Router.BLOCK, "sync", 11, FIRST + 1, parts, None, None, 0)


def ordinals(starts: dict[StreamId, int]) -> list[int]:
    return [part.ordinal for part in new_span(topic(), starts).parts]


def test_a_new_group_reads_from_the_first_storage_topic_of_which_it_has_something_to_read() -> None:
    assert ordinals({StreamId(10, 0): 5, StreamId(10, 1): 5}) == [FIRST + 1, FIRST + 2]
    assert ordinals({StreamId(10, 0): 5, StreamId(10, 1): 4}) == [FIRST, FIRST + 1, FIRST + 2]

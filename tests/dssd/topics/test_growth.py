"""Growth of topics: the rule of factors, what is refused, and what a switch leaves behind."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_core.errors import (
    DssError,
    GrowthOfNoUse,
    IllegalArgument,
    NothingToSwitchTo,
    StorageTopicWaits,
    TopicFullyGrown,
)
from dss_core.routing import Router, key_hash, parents, partition_of
from dssd.topics.growth import moved_share, next_part, refuse_waiting, switched, taking_over
from dssd.topics.model import NewTopic, StorageTopic, Topic


def topic(partitions: int, factor: int = 1, router: Router = Router.BLOCK) -> Topic:
    return NewTopic("t", partitions, factor, router).built(1, 10, 0)


def added(grown: Topic, partitions: int) -> Topic:
    part = next_part(grown, partitions, 10 + len(grown.storage_topics))
    return replace(grown, storage_topics=(*grown.storage_topics, part))


def grown(start: Topic, *steps: int) -> Topic:
    for at, partitions in enumerate(steps):
        more = added(start, partitions)
        start = switched(more, [5] * more.producing.partitions, 100 + at)
    return start


@pytest.mark.parametrize(
    ("steps", "factors"),
    [
        ((2, 10), (1, 5)),
        ((6, 12, 24), (1, 2, 4)),
        ((4, 6), (1, 1)),
        ((7, 10), (1, 1)),
        ((12, 4), (1, 1)),
        ((4, 12, 6), (1, 3, 1)),
    ],
)
def test_a_factor_keeps_the_base_where_it_divides_the_new_partitions(
    steps: tuple[int, ...], factors: tuple[int, ...]
) -> None:
    first, *more = steps
    parts = grown(topic(first), *more).storage_topics
    assert tuple(part.factor for part in parts) == factors
    assert [part.ordinal for part in parts] == list(range(len(steps)))


STEPS = st.lists(st.integers(1, 40), min_size=2, max_size=4)


@given(STEPS, st.sampled_from(Router), st.binary(max_size=8))
def test_a_key_goes_to_a_child_of_each_partition_that_it_was_in(
    steps: list[int], router: Router, key: bytes
) -> None:
    counts = [count for at, count in enumerate(steps) if at == 0 or count != steps[at - 1]]
    parts = grown(topic(counts[0], router=router), *counts[1:]).storage_topics
    hashed = key_hash(key)
    for old, new in pairwise(parts):
        before = partition_of(router, hashed, old.partitions, old.factor)
        now = partition_of(router, hashed, new.partitions, new.factor)
        shapes = {"old": (old.partitions, old.factor), "new": (new.partitions, new.factor)}
        assert before in parents(router, now, **shapes)


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [(0, IllegalArgument), (4_097, IllegalArgument), (6, GrowthOfNoUse)],
)
def test_a_storage_topic_of_no_use_or_of_no_size_is_refused(
    asked: int, refusal: type[DssError]
) -> None:
    with pytest.raises(refusal):
        next_part(topic(6), asked)


def test_a_topic_has_a_bounded_number_of_storage_topics() -> None:
    full = grown(topic(1), *range(2, 17))
    with pytest.raises(TopicFullyGrown):
        next_part(full, 99)


def test_a_switch_seals_the_old_one_and_lets_the_next_one_take_over() -> None:
    waits = added(topic(2), 10)
    assert taking_over(waits).ordinal == 1
    with pytest.raises(StorageTopicWaits):
        refuse_waiting(waits)
    after = switched(waits, [3, 4], 77)
    assert (after.produce_ordinal, after.topic_epoch) == (1, 11)
    assert after.storage_topics == (
        StorageTopic(10, 0, 2, 1, ends=(3, 4)),
        StorageTopic(11, 1, 10, 5, ends=None, begins_us=77),
    )
    refuse_waiting(after)
    with pytest.raises(NothingToSwitchTo):
        taking_over(after)


def test_ordinals_stay_where_the_first_storage_topics_are_gone() -> None:
    last = grown(topic(1), 2, 3)
    kept = replace(last, storage_topics=last.storage_topics[1:])
    assert (kept.producing.partitions, kept.waiting) == (3, ())
    assert [kept.part(ordinal) and ordinal for ordinal in (0, 1, 2, 3)] == [None, 1, 2, None]
    # What was stored at the epoch of the first one, nobody can tell any more.
    assert kept.produced_at(10) is None


def test_the_share_of_keys_that_change_their_partition_is_told() -> None:
    four = topic(4)
    whole, half = moved_share(four, four.producing, next_part(four, 5)), Router.RANGE
    ranged = topic(1, router=half)
    assert 0.7 < whole < 0.9
    assert 0.45 < moved_share(ranged, ranged.producing, next_part(ranged, 2)) < 0.55

"""Keys that records have in the simulators: what is drawn, and that it fits the stream."""

from collections import Counter

import pytest

from dss_core.decode import decode
from dss_core.frame import examine
from dss_core.frame_routing import verify_routing
from dss_core.ids import StreamId
from dss_core.producer_ids import NO_PRODUCER
from dss_core.routing import Router, key_hash, partition_of
from dss_sim.groups.history import HandedOut, Stored
from dss_sim.groups.run import run_seed
from dss_sim.log.acts import Sending
from dss_sim.log.new_frame import new_frame
from dss_sim.ordering_keys import KEYS_A_STREAM, OrderingKeys, keys_of_stream
from dss_sim.sessions.memory_log import Records

TOPICS = [(partition, partitions) for partitions in (1, 2, 3, 4) for partition in range(partitions)]


def routed(key: bytes, partitions: int) -> int:
    return partition_of(Router.BLOCK, key_hash(key), partitions, 1)


@pytest.mark.parametrize(("partition", "partitions"), TOPICS)
def test_a_stream_has_a_handful_of_keys_that_route_to_it(partition: int, partitions: int) -> None:
    keys = keys_of_stream(partition, partitions)
    assert len(set(keys)) == len(keys) == KEYS_A_STREAM
    assert {routed(key, partitions) for key in keys} == {partition}
    assert all(len(key) <= 1 for key in keys)


def test_the_empty_key_is_among_those_of_the_stream_that_it_routes_to() -> None:
    assert [b"" in keys_of_stream(partition, 3) for partition in range(3)] == [False, True, False]


def test_keys_are_skewed_and_some_are_absent() -> None:
    keys, of_stream = OrderingKeys(7), keys_of_stream(0, 1)
    drawn = Counter(key for frame in range(200) for key in keys.of_frame(of_stream, frame, 3))
    assert set(drawn) == {None, *of_stream}
    assert drawn[of_stream[0]] > 2 * drawn[of_stream[1]] > drawn[of_stream[-1]]


def test_keys_follow_from_the_seed_and_the_number_of_the_frame() -> None:
    frames = {
        (seed, number): OrderingKeys(seed).of_frame(("a", "b", "c"), number, 6)
        for seed in range(4)
        for number in (0, 5, 40)
    }
    assert len(set(frames.values())) == len(frames)
    assert OrderingKeys(3).of_frame(("a", "b", "c"), 40, 6) == frames[3, 40]
    assert OrderingKeys(3).of_frame((), 40, 6) == (None,) * 6


def test_a_run_of_groups_hands_out_each_kind_of_key() -> None:
    history = [event for seed in range(3) for event in run_seed(seed).history]
    stored = {key for event in history if isinstance(event, Stored) for key in event.keys}
    handed_out = {event.key for event in history if isinstance(event, HandedOut)}
    assert {None, "", "a"} <= handed_out <= stored


@pytest.mark.parametrize(("partition", "partitions"), TOPICS)
def test_frames_of_the_simulator_of_sessions_are_for_their_stream_and_of_one_size(
    partition: int, partitions: int
) -> None:
    records, stream = Records(5), StreamId(7, partition)
    records.create(7, partitions)
    appended = [keys for _, keys in (records.append(stream, 1 + at % 6) for at in range(30))]
    frames = records.streams[stream].frames
    for frame, keys in zip(frames, appended, strict=True):
        assert decode(frame).keys == list(keys)
        assert all(routed(key, partitions) == partition for key in keys if key is not None)
        assert len(frame) == len(frames[len(keys) - 1])


@pytest.mark.parametrize("records", [1, 3, 40])
@pytest.mark.parametrize(("partition", "partitions"), TOPICS)
def test_frames_of_the_simulator_of_the_log_are_for_their_stream_and_of_one_size(
    partition: int, partitions: int, records: int
) -> None:
    stream, sending = StreamId(7, partition), Sending(0, 0, 0, records, 9)
    keyless = len(new_frame(10, stream, 0, sending, [None] * records, NO_PRODUCER).content)
    drawn, of_stream = OrderingKeys("7 life 0"), keys_of_stream(partition, partitions)
    for number in range(10, 90):
        keys = drawn.of_frame(of_stream, number, records)
        frame = new_frame(number, stream, number, sending, keys, NO_PRODUCER)
        verify_routing(examine(frame.content), Router.BLOCK, partitions, 1, hash_keys=True)
        assert len(frame.content) == keyless
        assert records < 40 or set(frame.keys) > {None}

"""The rules of a queue, held by the world's own and by the client's."""

from collections.abc import Callable, Iterator

import pytest

from dss_client._producer_queue import FrameQueue as ClientFrameQueue
from dss_core.errors import DiskFull, SequenceGap, SequenceTooOld
from dss_core.ids import StreamId
from dss_core.limits import PRODUCER_WINDOW_SEQUENCES as WINDOW
from dss_sim.groups.frame_queue import AnyFrameQueue, FrameQueue, PendingFrame

FULL = DiskFull()
GAP = SequenceGap(given=9, expected_after=1, stream=StreamId(1, 0))
OLD = SequenceTooOld(given=9, stream=StreamId(1, 0))

QUEUES: list[Callable[[], AnyFrameQueue]] = [FrameQueue, lambda: ClientFrameQueue(0)]  # type: ignore[list-item,return-value]  # of other frames


@pytest.fixture(params=QUEUES, ids=["ours", "the client's"])
def queue(request: pytest.FixtureRequest) -> AnyFrameQueue:
    made: AnyFrameQueue = request.param()
    made.waiting.extend(PendingFrame(records) for records in range(1, 9))
    return made


def taken(queue: AnyFrameQueue) -> Iterator[tuple[int, int]]:
    """Sequence and records of all that may be sent now."""
    while (frame := queue.take()) is not None:
        yield frame.sequence, frame.records


def test_at_most_a_window_is_in_flight_and_an_ack_lets_the_next_go(queue: AnyFrameQueue) -> None:
    assert list(taken(queue)) == [(at, at + 1) for at in range(WINDOW)]
    frame = queue.acked(0)
    assert frame is not None
    assert frame.records == 1
    assert queue.acked(0) is None
    assert list(taken(queue)) == [(WINDOW, WINDOW + 1)]


def test_what_is_in_flight_is_sent_again_with_its_sequences(queue: AnyFrameQueue) -> None:
    sent = list(taken(queue))
    queue.acked(0)
    queue.lost()
    assert list(taken(queue)) == [*sent[1:], (WINDOW, WINDOW + 1)]


def test_what_was_behind_a_refused_frame_is_numbered_anew_once_all_is_back(
    queue: AnyFrameQueue,
) -> None:
    list(taken(queue))
    refused = queue.refused(0, FULL)
    assert refused is not None
    assert refused.records == 1
    for sequence in range(1, WINDOW):
        assert list(taken(queue)) == []
        assert queue.refused(sequence, GAP) is None
    assert list(taken(queue)) == [(at, at + 2) for at in range(WINDOW)]


def test_frames_that_are_refused_together_fail_together(queue: AnyFrameQueue) -> None:
    list(taken(queue))
    failed = [queue.refused(sequence, FULL) for sequence in range(WINDOW)]
    assert [frame.records for frame in failed if frame] == list(range(1, WINDOW + 1))
    assert next(taken(queue)) == (0, WINDOW + 1)


def test_a_connection_that_is_lost_amid_a_refusal_leaves_the_same(queue: AnyFrameQueue) -> None:
    sent = list(taken(queue))
    queue.acked(0)
    queue.refused(1, FULL)
    queue.refused(2, GAP)
    queue.lost()
    assert [frame.records for frame in queue.unsettled()] == list(range(3, 9))
    # A daemon that died, or that did not know the producer yet, may take any of these.
    assert list(taken(queue)) == sent[2:]
    for sequence, _ in sent[2:]:
        assert queue.refused(sequence, GAP) is None
    assert list(taken(queue)) == [(at, at + 2) for at in range(1, WINDOW + 1)]


def test_a_frame_of_which_nobody_knows_leaves_no_gap(queue: AnyFrameQueue) -> None:
    list(taken(queue))
    assert queue.refused(0, OLD) is not None
    assert queue.acked(1) is not None
    assert next(taken(queue)) == (WINDOW, WINDOW + 1)


def test_a_queue_that_is_cleared_wants_nothing(queue: AnyFrameQueue) -> None:
    list(taken(queue))
    queue.clear()
    assert queue.unsettled() == []
    assert list(taken(queue)) == []

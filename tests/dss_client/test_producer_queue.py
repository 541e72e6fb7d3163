import random

from dss_client._pending_frame import Ack, PendingFrame
from dss_client._producer_queue import FrameQueue
from dss_core.errors import (
    DiskFull,
    DssError,
    ProducerForgotten,
    SequenceGap,
    SequenceTooOld,
    StorageTopicSealed,
)
from dss_core.limits import PRODUCER_WINDOW_SEQUENCES


def queue_with(count: int) -> tuple[FrameQueue, list[PendingFrame]]:
    queue = FrameQueue(0)
    frames = [PendingFrame(0) for _ in range(count)]
    queue.waiting.extend(frames)
    return queue, frames


def taken(queue: FrameQueue) -> list[PendingFrame]:
    frames = []
    while (frame := queue.take()) is not None:
        frames.append(frame)
    return frames


def gap(sequence: int) -> SequenceGap:
    return SequenceGap(given=sequence, expected_after=0, stream="t/0/0")


def test_at_most_a_window_of_frames_is_in_flight() -> None:
    queue, frames = queue_with(8)
    assert taken(queue) == frames[:PRODUCER_WINDOW_SEQUENCES]
    assert not queue.has_work()
    assert queue.acked(0) is frames[0]
    assert taken(queue) == [frames[5]]
    assert [frame.sequence for frame in frames[:6]] == list(range(6))


def test_after_a_loss_the_frames_in_flight_go_first_with_their_sequences() -> None:
    queue, frames = queue_with(7)
    taken(queue)
    queue.acked(0)
    queue.lost()
    assert [frame.sequence for frame in taken(queue)] == [1, 2, 3, 4, 5]
    queue.lost()
    assert taken(queue) == frames[1:6]


def test_an_ack_that_comes_twice_is_ignored() -> None:
    queue, frames = queue_with(1)
    taken(queue)
    assert queue.acked(0) is frames[0]
    assert queue.acked(0) is None


def test_frames_behind_a_refused_one_are_numbered_anew_in_their_order() -> None:
    queue, frames = queue_with(6)
    taken(queue)
    assert queue.refused(1, DiskFull()) is frames[1]
    assert queue.acked(0) is frames[0]
    assert queue.take() is None
    for sequence in (2, 3, 4):
        assert queue.refused(sequence, gap(sequence)) is None
    again = taken(queue)
    assert again == frames[2:6]
    assert [frame.sequence for frame in again] == [1, 2, 3, 4]


def test_the_only_frame_refused_gives_its_sequence_back() -> None:
    queue, frames = queue_with(1)
    taken(queue)
    assert queue.refused(0, DiskFull()) is frames[0]
    queue.waiting.append(PendingFrame(0))
    assert [frame.sequence for frame in taken(queue)] == [0]


def test_a_loss_while_frames_come_back_leaves_them_their_sequences() -> None:
    queue, frames = queue_with(4)
    taken(queue)
    assert queue.refused(0, DiskFull()) is frames[0]
    queue.refused(1, gap(1))
    queue.lost()
    assert [(f.sequence, frames.index(f)) for f in taken(queue)] == [(1, 1), (2, 2), (3, 3)]
    for sequence in (1, 2, 3):
        queue.refused(sequence, gap(sequence))
    assert [(f.sequence, frames.index(f)) for f in taken(queue)] == [(0, 1), (1, 2), (2, 3)]


def test_what_came_back_for_a_gap_stays_before_what_a_daemon_that_died_then_takes() -> None:
    queue, frames = queue_with(5)
    taken(queue)
    assert queue.refused(0, DiskFull()) is frames[0]
    queue.refused(1, gap(1))
    queue.lost()
    # It is in doubt about its producers, and takes the first sequence that it gets.
    assert taken(queue) == frames[1:5]
    for sequence in (1, 2, 3, 4):
        assert queue.acked(sequence) is frames[sequence]
    queue.waiting.append(PendingFrame(0))
    assert [frame.sequence for frame in taken(queue)] == [5]


def test_what_came_back_for_a_gap_is_sent_with_what_is_in_doubt_behind_it_in_a_held_queue() -> None:
    queue, frames = queue_with(4)
    taken(queue)
    assert queue.refused(0, DiskFull()) is frames[0]
    queue.refused(1, gap(1))
    # Another stream has learned that the producer was forgotten there.
    queue.hold()
    queue.lost()
    assert taken(queue) == frames[1:4]
    assert queue.acked(1) is frames[1]
    queue.lost()
    assert taken(queue) == frames[2:4]
    for sequence in (2, 3):
        assert queue.acked(sequence) is frames[sequence]
    assert queue.unsettled() == []


def test_followers_that_a_daemon_stored_before_a_loss_are_answered_and_not_sent_as_others() -> None:
    queue, frames = queue_with(4)
    taken(queue)
    assert queue.refused(0, DiskFull()) is frames[0]
    queue.lost()
    assert taken(queue) == frames[1:]
    for sequence in (1, 2, 3):
        assert queue.acked(sequence) is frames[sequence]
    queue.waiting.append(PendingFrame(0))
    assert [frame.sequence for frame in taken(queue)] == [4]


def test_followers_that_a_daemon_stored_all_the_same_stay_stored() -> None:
    # A producer that the daemon does not know yet may begin at any sequence.
    queue, frames = queue_with(4)
    taken(queue)
    assert queue.refused(0, DiskFull()) is frames[0]
    for sequence in (1, 2, 3):
        assert queue.acked(sequence) is frames[sequence]
    queue.waiting.append(PendingFrame(0))
    assert [frame.sequence for frame in taken(queue)] == [4]


def test_an_indefinite_refusal_keeps_its_sequence_used() -> None:
    queue, frames = queue_with(3)
    taken(queue)
    assert queue.refused(0, SequenceTooOld(given=0, stream="t/0/0")) is frames[0]
    assert queue.acked(1) is frames[1]
    queue.waiting.append(PendingFrame(0))
    assert [frame.sequence for frame in taken(queue)] == [3]


def test_frames_that_were_refused_are_not_in_doubt() -> None:
    queue, frames = queue_with(3)
    taken(queue)
    queue.lost()
    taken(queue)
    assert queue.refused(0, DiskFull()) is frames[0]
    for sequence in (1, 2):
        queue.refused(sequence, gap(sequence))
    taken(queue)
    queue.hold()
    for sequence in (0, 1):
        assert queue.refused(sequence, ProducerForgotten(stream="t/0/0")) is None
    assert queue.unsettled() == frames[1:]


MOVED = StorageTopicSealed(topic="t", ordinal=0)


def test_a_held_queue_sends_nothing_new_and_keeps_what_was_refused_in_its_place() -> None:
    queue, frames = queue_with(8)
    taken(queue)
    queue.hold()
    assert queue.acked(0) is frames[0]
    assert not queue.has_work()
    assert queue.take() is None
    # A refusal comes twice: of one that is sealed, and of a gap behind that.
    for sequence, error in ((1, MOVED), (2, gap(2)), (3, MOVED)):
        assert queue.refused(sequence, error) is None
    queue.lost()
    # What has no answer yet is sent again as it was, with what only a gap kept from being stored.
    assert taken(queue) == [frames[2], frames[4]]
    assert queue.refused(2, gap(2)) is None
    assert queue.refused(4, SequenceTooOld(given=4, stream="t/0/0")) is frames[4]
    assert not queue.in_flight
    assert queue.unsettled() == [*frames[1:4], *frames[5:]]


def test_what_came_back_behind_a_refused_frame_is_not_waited_for_once_held() -> None:
    queue, frames = queue_with(7)
    taken(queue)
    assert queue.refused(0, DiskFull()) is frames[0]
    assert queue.refused(1, gap(1)) is None
    queue.hold()
    for sequence in (2, 3, 4):
        assert queue.refused(sequence, MOVED) is None
    assert not queue.in_flight
    assert queue.unsettled() == frames[1:]


def test_a_held_queue_fails_of_a_forgotten_producer_what_came_over_a_lost_connection() -> None:
    queue, frames = queue_with(2)
    queue.take()
    queue.lost()
    queue.take()
    assert taken(queue) == [frames[1]]
    queue.hold()
    forgotten = ProducerForgotten(stream="t/0/0")
    assert queue.refused(0, forgotten) is frames[0]
    assert queue.refused(1, forgotten) is None
    assert queue.unsettled() == [frames[1]]


class OneStream:
    """What the daemon does with one stream of one producer."""

    def __init__(self) -> None:
        self.stored: list[tuple[int, PendingFrame]] = []
        self.in_doubt = False
        """It died: what it has not got yet may go on at any sequence."""

    def answer(self, frame: PendingFrame, refuse: bool) -> DssError | None:
        known = {sequence for sequence, _ in self.stored}
        if frame.sequence in known:
            return None
        if self.stored and frame.sequence != max(known) + 1 and not self.in_doubt:
            return gap(frame.sequence)
        if refuse:
            return DiskFull()
        self.in_doubt = False
        self.stored.append((frame.sequence, frame))
        return None


def test_whatever_is_lost_or_refused_frames_are_stored_once_and_in_order() -> None:
    for seed in range(300):
        lose_and_refuse(seed)


def lose_and_refuse(seed: int) -> None:
    chance = random.Random(seed)
    queue, frames = queue_with(40)
    daemon, refused = OneStream(), set()
    # The first is stored, so that the daemon knows the producer.
    first = queue.take()
    assert first is not None
    on_the_way = [first]
    while queue.unsettled():
        while on_the_way:
            frame = on_the_way.pop(0)
            sequence = frame.sequence
            error = daemon.answer(frame, refuse=bool(daemon.stored) and chance.random() < 0.1)
            if chance.random() < 0.1:  # The answer is lost, and all that was on its way.
                on_the_way.clear()
                daemon.in_doubt = chance.random() < 0.5
                queue.lost()
                break
            if error is None:
                assert queue.acked(sequence) is frame
            elif queue.refused(sequence, error) is not None:
                refused.add(frames.index(frame))
        on_the_way = taken(queue)
    stored = [frames.index(frame) for _, frame in daemon.stored]
    assert stored == [index for index in range(40) if index not in refused]


async def test_a_settled_frame_wakes_everyone_and_lets_go_of_its_records() -> None:
    frame = PendingFrame(0)
    frame.payloads.append(b"x")
    frame.settle(Ack("t/0/0", 5, 0, "sync", False), None)
    assert (await frame.outcome_of(0)).offset == 5
    assert frame.payloads == []

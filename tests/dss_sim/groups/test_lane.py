"""The rules of a lane, held by the world's own and by the client's."""

from collections.abc import Callable, Iterator

import pytest

from dss_client._lane import Lane as ClientLane
from dss_core.errors import DiskFull, SequenceGap, SequenceTooOld
from dss_core.ids import StreamId
from dss_core.limits import PRODUCER_WINDOW_SEQUENCES as WINDOW
from dss_sim.groups.lane import AnyLane, Lane, PendingFrame

FULL = DiskFull()
GAP = SequenceGap(given=9, expected_after=1, stream=StreamId(1, 0))
OLD = SequenceTooOld(given=9, stream=StreamId(1, 0))

LANES: list[Callable[[], AnyLane]] = [Lane, lambda: ClientLane(0)]  # type: ignore[list-item,return-value]  # of other frames


@pytest.fixture(params=LANES, ids=["ours", "the client's"])
def lane(request: pytest.FixtureRequest) -> AnyLane:
    made: AnyLane = request.param()
    made.waiting.extend(PendingFrame(records) for records in range(1, 9))
    return made


def taken(lane: AnyLane) -> Iterator[tuple[int, int]]:
    """Sequence and records of all that may be sent now."""
    while (frame := lane.take()) is not None:
        yield frame.sequence, frame.records


def test_at_most_a_window_is_in_flight_and_an_ack_lets_the_next_go(lane: AnyLane) -> None:
    assert list(taken(lane)) == [(at, at + 1) for at in range(WINDOW)]
    frame = lane.acked(0)
    assert frame is not None
    assert frame.records == 1
    assert lane.acked(0) is None
    assert list(taken(lane)) == [(WINDOW, WINDOW + 1)]


def test_what_is_in_flight_is_sent_again_with_its_sequences(lane: AnyLane) -> None:
    sent = list(taken(lane))
    lane.acked(0)
    lane.lost()
    assert list(taken(lane)) == [*sent[1:], (WINDOW, WINDOW + 1)]


def test_what_was_behind_a_refused_frame_is_numbered_anew_once_all_is_back(lane: AnyLane) -> None:
    list(taken(lane))
    refused = lane.refused(0, FULL)
    assert refused is not None
    assert refused.records == 1
    for sequence in range(1, WINDOW):
        assert list(taken(lane)) == []
        assert lane.refused(sequence, GAP) is None
    assert list(taken(lane)) == [(at, at + 2) for at in range(WINDOW)]


def test_frames_that_are_refused_together_fail_together(lane: AnyLane) -> None:
    list(taken(lane))
    failed = [lane.refused(sequence, FULL) for sequence in range(WINDOW)]
    assert [frame.records for frame in failed if frame] == list(range(1, WINDOW + 1))
    assert next(taken(lane)) == (0, WINDOW + 1)


def test_a_connection_that_is_lost_amid_a_refusal_leaves_the_same(lane: AnyLane) -> None:
    list(taken(lane))
    lane.acked(0)
    lane.refused(1, FULL)
    lane.refused(2, GAP)
    lane.lost()
    assert [frame.records for frame in lane.unsettled()] == list(range(3, 9))
    assert list(taken(lane)) == [(at, at + 2) for at in range(1, WINDOW + 1)]


def test_a_frame_of_which_nobody_knows_leaves_no_gap(lane: AnyLane) -> None:
    list(taken(lane))
    assert lane.refused(0, OLD) is not None
    assert lane.acked(1) is not None
    assert next(taken(lane)) == (WINDOW, WINDOW + 1)


def test_a_lane_that_is_cleared_wants_nothing(lane: AnyLane) -> None:
    list(taken(lane))
    lane.clear()
    assert lane.unsettled() == []
    assert list(taken(lane)) == []

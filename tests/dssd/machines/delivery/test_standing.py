"""Where one offset of a held stream stands."""

import pytest

from dss_core.lane import MAIN
from dss_core.limits import ACKED_RANGES_MAX
from dss_core.progress import Progress
from dssd.limits import ISOLATE_AFTER_DOUBTS, REFUSED_MOVE_MS
from dssd.machines.attempts import Due
from dssd.machines.delivery.events import (
    Nak,
    Paused,
    Resumed,
    RevokeBegun,
    Settle,
    Suspended,
    Unpaused,
)
from dssd.machines.delivery.standing import Hindrance, Place, Standing
from support.played_lane import GRANT, PlayedLane
from support.played_window import ACK_WAIT_MS, Client, Stream


def standing(client: Client, offset: int, grant: int = 1) -> Standing:
    found = client.window.standing(grant, offset)
    assert found is not None
    return found


def place(client: Client, offset: int, grant: int = 1) -> Place:
    return standing(client, offset, grant).place


def lent(*sizes: int, records: int = 1_000, **more: object) -> Client:
    client = Client(records=records)
    client.install(1, Stream(sizes or (10,)), **more)  # type: ignore[arg-type] # of install
    return client


def test_a_grant_that_is_not_held_says_nothing() -> None:
    assert lent().window.standing(2, 0) is None


def test_a_record_is_sent_then_handed_out_then_done() -> None:
    client = lent()
    assert place(client, 4) is Place.SENT
    client.now_ms = 50
    client.feed(Settle(1, frontier=5))
    found = standing(client, 4)
    assert (found.place, found.attempts) == (Place.HANDED_OUT, 1)
    assert (found.since_ms, found.until_ms) == (50, 50 + ACK_WAIT_MS)
    assert place(client, 5) is Place.SENT
    client.feed(Settle(1, acked=((4, 5),), frontier=5))
    assert (place(client, 4), standing(client, 4).attempts) == (Place.DONE, 0)


def test_a_record_that_is_handed_out_out_of_turn_is_with_the_user() -> None:
    client = lent()
    client.feed(Settle(1, handed_out=((7, 8),)))
    assert [place(client, at) for at in (6, 7, 8)] == [Place.SENT, Place.HANDED_OUT, Place.SENT]


def test_a_refused_record_rests_until_its_time_and_is_sent_as_the_next_attempt() -> None:
    client = lent()
    client.feed(Settle(1, frontier=3, naks=(Nak(2, 3, 500),)))
    found = standing(client, 2)
    assert (found.place, found.until_ms, found.attempts) == (Place.RESTING, 500, 1)
    client.tick(500)
    assert place(client, 2) is Place.SENT  # the wait of the first sending still runs
    client.feed(Settle(1, handed_out=((2, 3),)))
    assert (place(client, 2), standing(client, 2).attempts) == (Place.HANDED_OUT, 2)


@pytest.mark.parametrize(("refuses", "again_ms"), [(False, None), (True, REFUSED_MOVE_MS)])
def test_a_record_on_its_way_to_a_queue_says_when_that_is_tried_again(
    refuses: bool, again_ms: int | None
) -> None:
    lane = PlayedLane(1)
    lane.holds, lane.refuses = not refuses, refuses
    lane.nak(MAIN, 0)
    found = lane.window.standing(GRANT, 0)
    assert found is not None
    assert (found.place, found.until_ms) == (Place.MOVING, again_ms)


def test_a_record_that_is_due_while_the_group_is_paused_waits_for_its_turn() -> None:
    client = lent()
    client.feed(Settle(1, frontier=3, naks=(Nak(2, 3, 500),)), Paused(1))
    client.tick(500)
    found = standing(client, 2)
    assert (found.place, found.hindrance) == (Place.DUE, Hindrance.PAUSED)
    client.feed(Unpaused(1))
    assert place(client, 2) is Place.SENT


def test_a_rest_of_an_older_grant_is_known_before_the_record_is_read() -> None:
    client = lent(frontier=5, rests=((3, 4, Due(9_000, 9_000)),))
    found = standing(client, 3)
    assert (found.place, found.until_ms) == (Place.RESTING, 9_000)


def test_a_suspect_waits_for_the_one_that_is_out_alone() -> None:
    doubts = ((2, 4, ISOLATE_AFTER_DOUBTS),)
    client = lent(frontier=4, doubts=doubts, attempts=doubts)
    assert {place(client, 2), place(client, 3)} == {Place.SUSPECT}
    client.tick(60_000)
    assert place(client, 2) is Place.SENT
    assert (place(client, 3), standing(client, 3).alone) == (Place.SUSPECT, 2)


def test_credit_that_is_used_up_keeps_records_from_being_sent() -> None:
    client = lent(5, 5, 5, records=5)
    found = standing(client, 12)
    assert (found.hindrance, found.floor) == (Hindrance.NO_CREDIT, 0)
    assert found.place in (Place.READ, Place.NOT_READ)
    assert client.window.taken() == {1: 5}
    client.feed(Settle(1, acked=((0, 5),), frontier=5))
    assert place(client, 7) is Place.SENT


def test_a_silent_leader_and_a_pause_are_told_apart() -> None:
    client = lent(5, 5, 5, records=5)
    client.feed(Suspended(1))
    assert standing(client, 12).hindrance is Hindrance.SUSPENDED
    client.feed(Paused(1))
    assert standing(client, 12).hindrance is Hindrance.PAUSED
    client.feed(Resumed(1), Unpaused(1))
    assert standing(client, 12).hindrance is Hindrance.NO_CREDIT


def test_too_many_acked_ranges_keep_records_from_being_read() -> None:
    ranges = tuple((at, at + 1) for at in range(1, 2 * ACKED_RANGES_MAX, 2))
    above = ranges[-1][1]
    client = lent(*[100] * (above // 100 + 100), records=100_000, progress=Progress(0, ranges))
    found = standing(client, client.streams[1].end - 1)
    assert (found.place, found.hindrance) == (Place.NOT_READ, Hindrance.CAPPED)
    assert found.floor == 0


def test_a_read_that_fails_is_the_reason() -> None:
    client = lent(failing=1)
    found = standing(client, 4)
    assert (found.place, found.hindrance) == (Place.NOT_READ, Hindrance.UNREADABLE)


def test_damage_at_which_the_group_stops_is_the_reason() -> None:
    client = Client()
    client.install(1, Stream([5, 5], damaged=((0, 5),), start=5), stall=True)
    assert standing(client, 4).hindrance is Hindrance.DAMAGED


def test_of_a_stream_that_is_given_back_what_is_not_out_comes_under_the_next_grant() -> None:
    client = lent()
    client.feed(Settle(1, frontier=3, naks=(Nak(2, 3, 500),)), RevokeBegun(1, 1_000))
    found = standing(client, 2)
    assert (found.place, found.hindrance) == (Place.GIVEN_BACK, Hindrance.ENDING)
    assert place(client, 1) is Place.HANDED_OUT
    assert place(client, 30) is Place.GIVEN_BACK

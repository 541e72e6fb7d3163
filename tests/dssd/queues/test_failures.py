"""What is told and counted of records that failed."""

from dss_core.ids import StreamId
from dss_core.lane import DEAD
from dssd.machines.delivery.events import MovePiece
from dssd.queues.entries import Maker, NewEntry
from dssd.queues.failures import FailureCounts, failed_in, failure_events
from dssd.queues.lane import Lane
from support.held_lane import piece

LANE = Lane((StreamId(1, 3), StreamId(2, 3), StreamId(3, 3)), 0, 1, 7, "anna")
STREAM = "orders/0/3"


def failed(offset: int, piece_: MovePiece, key: bytes | None = b"c-9") -> NewEntry:
    """The entry of a record of the stream."""
    return Maker(LANE, 5_000).made((offset, "orders/eu", key, b"{}", (), 1), 99, piece_)


def dead(offset: int, error: str = "no route to host") -> NewEntry:
    return failed(
        offset,
        piece(offset, offset + 1, to=DEAD, attempt=5, error=error, error_type="OSError"),
    )


def again(offset: int, attempt: int) -> NewEntry:
    return failed(offset, piece(offset, offset + 1, attempt=attempt, error="busy"))


def test_a_dead_record_is_told_with_its_key_its_error_and_who_had_it() -> None:
    [event] = failure_events("g@orders/#", STREAM, failed_in([dead(17)]))
    assert (event.kind.code, event.subject) == ("record.dead", "g@orders/#")
    assert event.sentence == (
        "The record orders/0/3@17 of key c-9 is dead after 5 attempts: OSError: no route to host"
    )
    assert event.fields["record"] == "orders/0/3@17"
    assert (event.fields["client_id"], event.fields["cause"]) == ("anna", "refused")


def test_a_record_is_told_as_failing_the_third_time_only() -> None:
    told = [list(failure_events("g", STREAM, failed_in([again(1, attempt)]))) for attempt in (1, 2)]
    assert told == [[], []]
    [third] = failure_events("g", STREAM, failed_in([again(1, 3)]))
    assert third.kind.code == "record.failing"
    assert third.sentence == "The record orders/0/3@1 of key c-9 is failing after 3 attempts: busy"
    assert not list(failure_events("g", STREAM, failed_in([again(1, 4)])))


def test_a_flood_of_dead_letters_is_one_event_that_says_how_many() -> None:
    run = [dead(offset, f"order {offset} unknown") for offset in range(1_000)]
    events = list(failure_events("g", STREAM, failed_in([*run, again(1_000, 3)])))
    assert [each.kind.code for each in events] == ["record.failing", "record.dead"]
    assert events[1].fields["records"] == "1000"
    assert events[1].sentence.startswith("1000 records are dead, the last of them orders/0/3@999")
    other = next(failure_events("g", "orders/0/4", failed_in([dead(3)])))
    assert other.identity == events[1].identity  # so they are kept as one, with a count


def test_a_key_that_is_long_or_no_text_does_not_hinder() -> None:
    odd = [
        failed(1, piece(1, 2, to=DEAD), key=key) for key in (None, b"", b"\xff\n", b"k" * 60_000)
    ]
    for each in odd:
        [event] = failure_events("g", STREAM, failed_in([each]))
        assert event.sentence.endswith(": refused")
        assert len(event.fields["key"]) <= 64


def test_failures_are_counted_once_and_what_is_moved_for_other_reasons_is_none() -> None:
    counts = FailureCounts()
    copied = replace_piece(again(3, 3), is_copied=True)
    redriven = replace_piece(again(4, 3), level=DEAD)
    counts.note(failed_in([dead(1), dead(2), again(5, 1), copied, redriven]))
    assert (counts.retried, counts.dead) == (1, 2)
    assert not list(failure_events("g", STREAM, failed_in([copied, redriven])))


def replace_piece(entry: NewEntry, **other: object) -> NewEntry:
    return entry._replace(piece=entry.piece._replace(**other))  # type: ignore[arg-type]

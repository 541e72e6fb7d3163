import errno
import os

import pytest

from dss_core.lane import (
    DEAD,
    ERROR_HEADER,
    ERROR_TEXT_BYTES_MAX,
    FOLLOWER,
    LANE_HEADER,
    MAIN,
    RETRY,
    LaneEntry,
)
from dss_core.limits import HEADER_BYTES_MAX, HEADERS_MAX, RECORD_BYTES_MAX
from dssd.machines.delivery.causes import DIED, FOLLOWS, REFUSED
from dssd.machines.delivery.events import Entry, MovePiece
from dssd.queues import moving
from dssd.queues.entries import error_of, lane_of
from dssd.queues.error_fingerprint import fingerprint
from support.held_lane import Holder, entries_of, piece

OWN = (("own", b"1"), ("own", b"2"))


async def test_an_entry_is_its_record_with_two_headers_more(holder: Holder) -> None:
    await holder.publish(b"a", b"b", headers=OWN)
    await holder.opened()
    moved = await holder.move(piece(1, 2, error="no such order", error_type="KeyError"))
    assert [(level, entry[:5]) for level, entry in moved.entries] == [
        (RETRY, Entry(0, 9_000, 1, MAIN, 1, 0)[:5])
    ]
    (row,) = await holder.rows(RETRY)
    offset, subject, key, payload, headers, timestamp_us = row
    assert (offset, subject, key, payload, timestamp_us) == (0, "orders/eu", b"key", b"b", 5)
    assert headers[:2] == OWN
    assert [name for name, _ in headers[2:]] == [LANE_HEADER, ERROR_HEADER]
    assert error_of(headers) == "no such order"


async def test_an_entry_says_where_its_record_came_from_and_what_became_of_it(
    holder: Holder,
) -> None:
    stored = await holder.publish(b"a")
    await holder.opened()
    await holder.move(piece(0, 1, error="no 17", error_type="KeyError"))
    (row,) = await holder.rows(RETRY)
    entry = lane_of(row[4])
    assert entry == LaneEntry(
        source_level=MAIN,
        source_offset=0,
        origin_ordinal=0,
        origin_partition=1,
        origin_offset=0,
        origin_time_us=stored.append_time_us,
        attempt=1,
        due_ms=9_000,
        first_failure_ms=entry.first_failure_ms,
        cause="refused",
        error_type="KeyError",
        fingerprint=fingerprint("KeyError", "no 17"),
        client_id="client",
        grant_epoch=1,
        cursor_generation=7,
    )
    assert entry.first_failure_ms > 0


async def test_a_record_that_fails_again_keeps_its_origin_and_has_one_pair_of_headers(
    holder: Holder,
) -> None:
    await holder.publish(b"a", headers=OWN)
    await holder.opened()
    await holder.move(piece(0, 1, error="first"))
    (first,) = await holder.rows(RETRY)
    await holder.move(piece(0, 1, level=RETRY, to=DEAD, attempt=2, cause="died", error="second"))
    (last,) = await holder.rows(DEAD)
    before, after = lane_of(first[4]), lane_of(last[4])
    assert (after.source_level, after.source_offset, after.attempt) == (RETRY, 0, 2)
    assert after[2:6] == before[2:6]
    assert (after.first_failure_ms, after.cause) == (before.first_failure_ms, "died")
    assert error_of(last[4]) == "second"
    assert [name for name, _ in last[4]] == ["own", "own", LANE_HEADER, ERROR_HEADER]


async def test_a_failure_that_says_nothing_leaves_the_last_error(holder: Holder) -> None:
    await holder.publish(b"a")
    await holder.opened()
    await holder.move(piece(0, 1, error="first", error_type="KeyError"))
    await holder.move(piece(0, 1, level=RETRY, attempt=2, cause="ack wait"))
    entry = lane_of((await holder.rows(RETRY))[1][4])
    assert error_of((await holder.rows(RETRY))[1][4]) == "first"
    assert (entry.error_type, entry.cause) == ("KeyError", "ack wait")


async def test_a_dead_letter_that_returns_says_by_which_operation_and_how_often(
    holder: Holder,
) -> None:
    await holder.publish(b"a")
    await holder.opened()
    await holder.move(piece(0, 1, to=DEAD, error="first"))
    back = piece(0, 1, level=DEAD, attempt=0, due_ms=0, cause="redriven", operation=12)
    await holder.move(back)
    entry = lane_of((await holder.rows(RETRY))[0][4])
    assert (entry.redrives, entry.operation, entry.attempt) == (1, 12, 0)
    await holder.move(piece(0, 1, level=RETRY, attempt=1))
    later = lane_of((await holder.rows(RETRY))[1][4])
    assert (later.redrives, later.operation) == (1, 12)


async def test_a_record_that_its_consumers_died_of_names_none_that_never_had_it(
    holder: Holder,
) -> None:
    await holder.publish(b"a", b"b")
    await holder.opened()
    await holder.move(piece(0, 1, to=DEAD, attempt=3, cause=DIED), piece(1, 2, cause=REFUSED))
    assert lane_of((await holder.rows(DEAD))[0][4]).client_id == ""
    assert lane_of((await holder.rows(RETRY))[0][4]).client_id == "client"


async def test_a_copy_differs_only_in_its_place(holder: Holder) -> None:
    await holder.publish(b"a")
    await holder.opened(epoch=1)
    await holder.move(piece(0, 1, error="first"), epoch=1)
    await holder.opened(epoch=2)
    moved = await holder.move(
        piece(0, 1, level=RETRY, attempt=9, due_ms=1, cause="x", is_copied=True), epoch=2
    )
    first, copy = await holder.rows(RETRY)
    changed = lane_of(first[4])._replace(source_level=RETRY, source_offset=0)
    assert lane_of(copy[4]) == changed
    assert error_of(copy[4]) == "first"
    assert [(entry.due_ms, entry.attempt) for _, entry in moved.entries] == [(9_000, 1)]


async def test_a_move_to_both_queues_is_told_by_level_and_offset(holder: Holder) -> None:
    await holder.publish(*(b"%d" % number for number in range(10)))
    await holder.opened()
    moved = await holder.move(
        piece(6, 8), piece(2, 4, to=DEAD), piece(0, 2), piece(4, 6, to=DEAD), piece(8, 10)
    )
    told = [(level, entry.offset, entry.source_offset) for level, entry in moved.entries]
    retried = [(RETRY, at, source) for at, source in enumerate((0, 1, 6, 7, 8, 9))]
    assert told == retried + [(DEAD, at, source) for at, source in enumerate((2, 3, 4, 5))]
    assert [row[3] for row in await holder.rows(DEAD)] == [b"2", b"3", b"4", b"5"]


async def test_a_move_is_appended_in_one_call_and_read_in_few(holder: Holder) -> None:
    for number in range(40):
        await holder.publish(*(b"%d-%d" % (number, each) for each in range(50)))
    await holder.opened()
    holder.log.reads = 0
    pieces = [piece(at, at + 1, to=RETRY + at % 2) for at in range(0, 2_000, 5)]
    moved = await holder.move(*pieces)
    assert len(moved.entries) == 400
    assert holder.log.reads <= 10
    assert len(holder.log.begun_bytes) == 1
    rows = await holder.rows(RETRY) + await holder.rows(DEAD)
    times = {lane_of(row[4]).first_failure_ms for row in rows}
    assert len(times) == 1
    assert sorted(row[3] for row in rows) == sorted(
        b"%d-%d" % divmod(at, 50) for at in range(0, 2_000, 5)
    )


async def test_a_full_record_fits_with_its_longest_error(holder: Holder) -> None:
    headers = tuple((f"h{at}", b"") for at in range(HEADERS_MAX - 1))
    used = sum(len(name) for name, _ in headers) + 1
    headers = (*headers, ("x", bytes(HEADER_BYTES_MAX - used)))
    payload = bytes(RECORD_BYTES_MAX - HEADER_BYTES_MAX)
    await holder.publish(payload, headers=headers, key=None)
    await holder.opened()
    moved = await holder.move(piece(0, 1, error="é" * (1 << 19), error_type="T" * (1 << 20)))
    assert (len(moved.entries), moved.failed) == (1, ())
    (row,) = await holder.rows(RETRY)
    assert row[3] == payload
    assert error_of(row[4]) == "é" * (ERROR_TEXT_BYTES_MAX // 2)
    assert lane_of(row[4]).error_type == "T" * ERROR_TEXT_BYTES_MAX
    assert len(entries_of(await holder.opened(epoch=2), RETRY)) == 1


async def test_many_full_headers_fit_side_by_side(holder: Holder) -> None:
    headers = (("x", bytes(HEADER_BYTES_MAX - 1)),)
    await holder.publish(*[b"a"] * 40, headers=headers)
    await holder.opened()
    moved = await holder.move(piece(0, 40, error="e" * ERROR_TEXT_BYTES_MAX))
    assert len(moved.entries) == 40


async def test_a_long_move_is_gathered_in_parts(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "MOVE_GATHERED_BYTES", 1 << 20)
    for _ in range(6):
        await holder.publish(*[bytes(1 << 16)] * 10)
    await holder.opened()
    moved = await holder.move(piece(0, 60))
    assert [entry.offset for _, entry in moved.entries] == list(range(60))
    assert len(holder.log.begun_bytes) > 2
    assert max(holder.log.begun_bytes) < 3 << 20


async def test_a_full_disk_leaves_records_where_they_are(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await holder.publish(b"a", b"b", b"c", b"d")
    await holder.opened()
    usual = os.pwritev

    def full(*given: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "pwritev", full)
    pieces = piece(0, 2), piece(3, 4, to=DEAD)
    moved = await holder.move(*pieces)
    assert (moved.entries, moved.lost, moved.failed) == ((), (), pieces)
    monkeypatch.setattr(os, "pwritev", usual)
    moved = await holder.move(*pieces)
    assert (len(moved.entries), moved.failed) == (3, ())


async def test_what_retention_took_is_lost_and_the_rest_is_moved(holder: Holder) -> None:
    main = holder.levels[MAIN]
    for payload in (b"a", b"b", b"c"):
        await holder.publish(payload, payload)
        await holder.shelf.log.roll(main.storage_topic_id)
    await holder.shelf.log.trim(main, 2)
    await holder.opened()
    moved = await holder.move(piece(1, 5))
    assert moved.lost == ((MAIN, 1, 2),)
    assert [entry.source_offset for _, entry in moved.entries] == [2, 3, 4]
    assert moved.failed == ()


async def test_a_read_that_fails_leaves_its_stretch_where_it_is(holder: Holder) -> None:
    await holder.publish(*[b"a"] * 1_000)
    await holder.opened()
    holder.log.unreadable = 1
    moved = await holder.move(piece(0, 1), piece(900, 901))
    assert moved.failed == (piece(0, 1),)
    assert [entry.source_offset for _, entry in moved.entries] == [900]
    assert holder.trouble.told[-2:] == [("unreadable", MAIN), ("readable", MAIN)]


async def test_a_record_that_does_not_exist_stays_where_it_is(holder: Holder) -> None:
    await holder.publish(b"a")
    await holder.opened()
    moved = await holder.move(piece(0, 3))
    assert len(moved.entries) == 1
    assert moved.failed == (piece(1, 3),)


async def test_errors_that_differ_in_numbers_have_one_fingerprint() -> None:
    same = {
        fingerprint("E", f"order {order} at 0x7f{order:x}00 of {order:032x} failed")
        for order in (7, 123_456, 99)
    }
    assert len(same) == 1
    ids = ("550e8400-e29b-41d4-a716-446655440000", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeee0")
    assert len({fingerprint("E", f"no {each}") for each in ids}) == 1
    assert fingerprint("E", "no order") != fingerprint("F", "no order")
    assert fingerprint("E", "dead beef") != fingerprint("E", "bad cafe")


async def test_what_failed_is_told_and_counted_once_its_entry_is_durable(holder: Holder) -> None:
    await holder.publish(b"a", b"b", b"c")
    await holder.opened()
    await holder.move(piece(0, 1), piece(1, 3, to=DEAD, attempt=5, error="no"))
    told = [each for failed in holder.trouble.failures for each in failed.told]
    assert [(each.lane.origin_offset, each.key, each.error) for each in told] == [
        (1, b"key", "no"),
        (2, b"key", "no"),
    ]
    counts = holder.writers.failures
    assert (counts.retried, counts.dead) == (1, 2)
    await holder.opened(epoch=2)
    await holder.move(piece(0, 3, to=DEAD), epoch=1)  # fenced: nothing of it is durable
    assert (counts.retried, counts.dead) == (1, 2)


async def test_what_follows_is_a_follower_keeps_its_failures_and_is_none(holder: Holder) -> None:
    await holder.publish(b"a", b"b")
    await holder.opened()
    await holder.move(piece(0, 1, attempt=2, error="boom"))
    follows = MovePiece(RETRY, 0, 1, DEAD, 0, 0, FOLLOWS)
    await holder.move(follows, follows._replace(level=MAIN, start=1, end=2))
    entries = [lane_of(row[4]) for row in await holder.rows(DEAD)]
    assert [(each.kind, each.attempt, each.cause) for each in entries] == [
        (FOLLOWER, 0, FOLLOWS), (FOLLOWER, 2, FOLLOWS),
    ]  # fmt: skip
    assert [each.dead for each in holder.trouble.failures] == [0, 0]
    assert error_of((await holder.rows(DEAD))[1][4]) == "boom"

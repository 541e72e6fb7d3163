"""Entries of queues, as people and programs see them."""

from dataclasses import replace

from dss_client import ErrorCount, QueueEntry
from dssctl.nouns.queues import DEAD_KIND, RETRY_KIND, entry_item, error_item, error_name
from dssctl.output import Instant

NOW_US = 1_800_000_000_000_000
NOW_MS = NOW_US // 1_000
DEAD = QueueEntry(
    stream="orders/0/3",
    offset=17,
    level="dead",
    queue_offset=4,
    subject="orders/eu",
    key=b"c-9",
    payload_bytes=120,
    attempt=5,
    redrives=0,
    cause="refused",
    error_type="OSError",
    error="no route\nto host",
    fingerprint="abc0000000000001",
    client_id="anna",
    appended_at_us=NOW_US - 9_000_000,
    first_failure_ms=NOW_MS - 8_000,
    entered_at_us=NOW_US - 4_000_000,
    due_ms=NOW_MS,
    payload=b"",
    headers=(),
)
WAITING = replace(DEAD, level="retry", attempt=2, due_ms=NOW_MS + 40_000)


def cells(kind_of: str, entry: QueueEntry) -> dict[str, str]:
    kind = DEAD_KIND if kind_of == "dead" else RETRY_KIND
    item = entry_item(entry)
    columns = (column for column in kind.columns if not column.only_csv)
    return {column.header: column.text(item, NOW_US) for column in columns}


def test_a_dead_letter_is_its_record_how_often_it_failed_and_why() -> None:
    shown = cells("dead", DEAD)
    assert (shown["ORIGIN"], shown["KEY"], shown["ATTEMPTS"]) == ("orders/0/3@17", "c-9", "5")
    assert (shown["ERROR"], shown["DIED"]) == ("OSError: no route to host", "4s")
    assert entry_item(DEAD)["due_at"] is None


def test_what_waits_says_when_it_is_due() -> None:
    assert cells("retry", WAITING)["DUE"] == "in 40s"
    assert cells("retry", replace(WAITING, due_ms=NOW_MS - 1))["DUE"] == "now"
    assert entry_item(WAITING)["due_at"] == Instant.of_ms(NOW_MS + 40_000)


def test_an_entry_without_an_error_says_its_cause_and_a_long_error_is_cut_in_a_table() -> None:
    silent = replace(DEAD, error="", error_type="", fingerprint="", cause="ack wait")
    assert cells("dead", silent)["ERROR"] == "ack wait"
    long = cells("dead", replace(DEAD, error="x" * 500))["ERROR"]
    assert len(long) < 80
    assert entry_item(replace(DEAD, error="x" * 500))["error"] == "x" * 500


def test_a_key_that_is_no_text_is_not_lost() -> None:
    item = entry_item(replace(DEAD, key=b"\xff"))
    assert (item["key"], item["key_base64"]) == (None, "/w==")
    assert entry_item(replace(DEAD, key=None))["key"] is None


def test_an_error_is_named_by_its_first_digits_or_by_its_cause() -> None:
    counted = ErrorCount(
        "abc0000000000001", "refused", "OSError", "no route", 3, NOW_US, NOW_US, "orders/0/3", 7
    )
    assert error_name(error_item(counted)) == "abc00000"
    silent = ErrorCount("", "ack wait", "", "", 3, NOW_US, NOW_US, "orders/0/3", 7)
    assert error_name(error_item(silent)) == "ack wait"

"""What a restore changes in a store, row by row."""

import json
from collections.abc import Sequence

from dss_core.limits import RESTORE_EPOCHS_RAISED, RESTORE_OFFSETS_RAISED
from dssd.access.permissions import confirmed, is_suspended
from dssd.backups.renewal import (
    SESSION_EPOCHS_RAISED,
    Renewal,
    StoredRows,
    renewal,
)
from dssd.store.access_rows import PrincipalRow
from dssd.store.job_rows import JobProgressRow
from dssd.store.port import Put
from dssd.store.rows import (
    CeilingRow,
    EventRow,
    GrantRow,
    GroupRow,
    IncarnationRow,
    LeaderRow,
    ProgressRow,
    Row,
    SessionRow,
    StorageTopicRow,
    TopicRow,
)

AT_MS = 1_700_000_000_000
ENDS = {1: (10, 20), 2: (5,), 3: (7,)}
GROUP = GroupRow(9, "billing", "orders/#", "shared", "now", None, 30_000, AT_MS, 0)


def topic(topic_id: int, name: str, level: int = 0) -> TopicRow:
    return TopicRow(topic_id, name, f"{name}/#", "block", "sync", 0, 1, None, None, AT_MS, 0, level)


def part(topic_id: int, storage_topic_id: int, partitions: int) -> StorageTopicRow:
    return StorageTopicRow(topic_id, 0, storage_topic_id, partitions, 1, None, "")


def progress(storage_topic_id: int, partition: int, marked_below: int = 0) -> ProgressRow:
    return ProgressRow(
        9,
        storage_topic_id,
        partition,
        floor=4,
        ranges=b"",
        frontier=6,
        attempts=b"",
        finished=False,
        cursor_generation=0,
        marked_below=marked_below,
    )


ROWS: Sequence[Row] = (
    topic(100, "orders"),
    topic(101, "$queue", level=1),
    part(100, 1, 2),
    StorageTopicRow(100, 1, 2, 1, 1, "5", ""),
    part(101, 3, 1),
    CeilingRow(1, 1, 1_000),
    GROUP,
    progress(1, 0),
    LeaderRow(9, b"", 3, 0),
    GrantRow(9, 1, 0, 4, b"s", b"b", 0),
    SessionRow("ada", b"s", 5, 0, None, "local:ada"),
    JobProgressRow(50, 1, 1, 1, 6, "d"),
    IncarnationRow(1, b"a" * 16),
    PrincipalRow("token:x", json.dumps([]), b"h" * 32, b"", 0, 77, AT_MS, "local:ada"),
    EventRow(-1, AT_MS, "call.done", "info", "x", "y", "{}", 1, AT_MS),
    EventRow(8, AT_MS, "disk.room", "info", "x", "y", "{}", 1, AT_MS),
)


def renewed(rows: Sequence[Row] = ROWS) -> tuple[Renewal, dict[type[Row], list[Row]]]:
    by_kind: dict[type[Row], list[Row]] = {}
    for row in rows:
        by_kind.setdefault(type(row), []).append(row)
    made = renewal(StoredRows(by_kind), ENDS, AT_MS, "It was restored.")
    written: dict[type[Row], list[Row]] = {}
    for write in made.writes:
        assert isinstance(write, Put)
        written.setdefault(type(write.row), []).append(write.row)
    return made, written


def test_streams_that_take_records_go_on_far_behind_all_that_was_given() -> None:
    _, written = renewed()
    assert written[CeilingRow] == [
        CeilingRow(1, 0, 10 + RESTORE_OFFSETS_RAISED),
        CeilingRow(1, 1, 1_000 + RESTORE_OFFSETS_RAISED),
    ]


def test_epochs_go_on_above_all_that_were_given() -> None:
    _, written = renewed()
    assert written[LeaderRow] == [LeaderRow(9, b"", 3 + RESTORE_EPOCHS_RAISED, 0)]
    [session] = written[SessionRow]
    [job] = written[JobProgressRow]
    assert isinstance(session, SessionRow)
    assert isinstance(job, JobProgressRow)
    assert session.session_epoch == 5 + SESSION_EPOCHS_RAISED
    assert (job.epoch, job.driver) == (6 + RESTORE_EPOCHS_RAISED, "")


def test_a_stream_that_nobody_had_borrowed_gets_no_low_epoch_either() -> None:
    _, written = renewed()
    grants = {(row.storage_topic_id, row.partition): row for row in written[GrantRow]}  # type: ignore[attr-defined] # they are grants
    assert grants[1, 0] == GrantRow(9, 1, 0, 4 + RESTORE_EPOCHS_RAISED, b"s", b"b", 0)
    assert grants[1, 1] == GrantRow(9, 1, 1, RESTORE_EPOCHS_RAISED, None, None, 0)
    assert set(grants) == {(1, 0), (1, 1), (2, 0)}


def test_every_record_of_every_group_counts_as_perhaps_handed_out() -> None:
    _, written = renewed()
    marked = {(row.storage_topic_id, row.partition): row for row in written[ProgressRow]}  # type: ignore[attr-defined] # they are progress
    assert marked[1, 0] == progress(1, 0, 10 + RESTORE_OFFSETS_RAISED)
    assert (marked[1, 1].floor, marked[1, 1].marked_below) == (0, 1_000 + RESTORE_OFFSETS_RAISED)  # type: ignore[attr-defined] # it is progress
    assert marked[2, 0].marked_below == 5  # type: ignore[attr-defined] # it is sealed


def test_the_data_is_another_and_says_so() -> None:
    made, written = renewed()
    [data] = written[IncarnationRow]
    assert isinstance(data, IncarnationRow)
    assert (data.number, data.incarnation, made.restores) == (2, made.incarnation, 1)
    assert data.incarnation != b"a" * 16
    assert renewed()[0].incarnation != made.incarnation
    [event] = written[EventRow]
    assert isinstance(event, EventRow)
    assert (event.number, event.code) == (9, "data.restored")


def test_principals_are_suspended_and_keep_all_that_they_had() -> None:
    made, written = renewed()
    [row] = written[PrincipalRow]
    assert isinstance(row, PrincipalRow)
    assert is_suspended(row.permissions)
    assert (confirmed(row.permissions), row.expires_at_ms, made.suspended) == ("[]", 77, 1)

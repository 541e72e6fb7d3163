"""What a leader stores of queues is what the next one begins with."""

from hypothesis import given
from hypothesis import strategies as st

from dss_core.ids import StreamId
from dss_core.progress import Progress, normalised
from dssd.leaders.declarations import policy_of
from dssd.leaders.lanes import queue_row, queues_of
from dssd.leaders.progress_columns import reached_by
from dssd.leaders.takeover import rows_of
from dssd.machines.attempts import Due
from dssd.machines.fate import Counts, Fate
from dssd.machines.leader.events import StreamRecord
from dssd.machines.queues import QueueState, Redrive, RetryPolicy
from dssd.store.rows import GroupRow, ProgressRow

MAIN, RETRY, DEAD = StreamId(1, 0), StreamId(8, 0), StreamId(9, 0)
PLAIN = GroupRow(7, "billing", "orders/#", "shared", "", None, 30_000, 0, 0)
LANED = GroupRow(
    7, "billing", "orders/#", "shared", "", None, 30_000, 0, 0,
    max_deliver=3, backoff_ms="10,20", queue_records=5, queue_bytes=6,
)  # fmt: skip


class Named:
    """A catalogue that has made the queues of one stream."""

    def queues_of(self, group_id: int, main: StreamId) -> tuple[StreamId, StreamId] | None:
        return (RETRY, DEAD) if (group_id, main) == (7, MAIN) else None


OFFSETS = st.integers(0, 1 << 40)
RANGES = st.lists(st.tuples(OFFSETS, OFFSETS), max_size=3).map(normalised)
ENTRIES = RANGES.map(lambda found: tuple((start, end, 2) for start, end in found))
RESTS = RANGES.map(lambda found: tuple((start, end, Due(9, 4)) for start, end in found))
FATES = st.builds(Fate, ENTRIES, ENTRIES, RESTS, RANGES, st.builds(Counts, *[OFFSETS] * 6))
QUEUES = st.builds(
    lambda done, applied, attempts, fate, operation, ranges: QueueState(
        RETRY, Progress(5).with_acked(done), applied, attempts, fate, Redrive(operation, ranges)
    ),
    RANGES,
    OFFSETS,
    ENTRIES,
    FATES,
    OFFSETS,
    RANGES,
)


@given(QUEUES)
def test_a_queue_is_read_back_as_it_was_stored(queue: QueueState) -> None:
    rows = {RETRY: queue_row(LANED, queue)}
    assert queues_of(Named(), LANED, MAIN, rows) == (queue, QueueState(DEAD))


def test_a_stream_whose_queues_are_not_made_cannot_be_lent() -> None:
    assert queues_of(Named(), LANED, StreamId(2, 0), {}) is None


def test_a_plain_group_asks_for_no_queues() -> None:
    assert queues_of(Named(), PLAIN, MAIN, {}) == ()
    assert policy_of(PLAIN) is None


def test_the_policy_of_a_group_is_that_of_its_row() -> None:
    assert policy_of(LANED) == RetryPolicy(3, (10, 20), 5, 6)


def test_each_queue_is_stored_under_its_own_storage_topic() -> None:
    queues = (QueueState(RETRY, Progress(1), 4), QueueState(DEAD, Progress(0), 2))
    record = StreamRecord(MAIN, Progress(3), 3, (), False, None, queues=queues)
    found = rows_of(LANED, record)
    assert [there for there, _ in found] == [1, 8, 9]
    kept = [write.row for _, writes in found for write in writes if hasattr(write, "row")]
    rows = [row for row in kept if isinstance(row, ProgressRow)]
    assert [(row.floor, row.applied_end) for row in rows] == [(3, 0), (1, 4), (0, 2)]


def test_the_row_of_a_queue_does_not_grow_with_what_waits_in_it() -> None:
    few = queue_row(LANED, QueueState(RETRY, Progress(1), 2))
    many = queue_row(LANED, QueueState(RETRY, Progress(1), 2_000_000))
    assert (few.ranges, few.attempts) == (many.ranges, many.attempts) == (b"", b"")


def test_a_queue_was_reached_as_far_as_it_was_applied() -> None:
    assert reached_by(queue_row(LANED, QueueState(RETRY, Progress(1), 4))) == 4

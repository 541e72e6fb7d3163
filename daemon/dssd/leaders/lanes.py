"""The queues of a group's streams: their rows, and the state that a leader begins with.

Each queue has a progress row of its own, under the stream id of the queue. Invariant: a queue
without a row was never reported on. This module must not know what a queue holds.
"""

from collections.abc import Mapping
from typing import Protocol

from dss_core.ids import StreamId
from dssd.leaders.progress_columns import (
    fate_columns,
    fate_of,
    packed_attempts,
    packed_ranges,
    progress_of,
    unpacked_attempts,
    unpacked_ranges,
)
from dssd.machines.queues import (
    Errand,
    Hurried,
    Queues,
    QueueState,
    Redrive,
)
from dssd.store.rows import GroupRow, ProgressRow


class NamesQueues(Protocol):
    """What this asks of the catalogue."""

    def queues_of(self, group_id: int, main: StreamId) -> tuple[StreamId, StreamId] | None:
        """The retry queue and the dead letters of a stream; None: they are not made."""


def has_queues(group: GroupRow) -> bool:
    """Whether the group has a retry queue and dead letters for each stream."""
    return group.max_deliver > 0


def queues_of(
    catalogue: NamesQueues,
    group: GroupRow,
    main: StreamId,
    rows: Mapping[StreamId, ProgressRow],
) -> Queues | None:
    """The queues of a stream; empty in a plain group, None where they are not made yet."""
    if not has_queues(group):
        return ()
    named = catalogue.queues_of(group.group_id, main)
    if named is None:
        return None
    return tuple(_queue_of(stream, rows.get(stream)) for stream in named)


def _queue_of(stream: StreamId, row: ProgressRow | None) -> QueueState:
    if row is None:
        return QueueState(stream)
    return QueueState(
        stream,
        progress_of(row),
        row.applied_end,
        unpacked_attempts(row.attempts),
        fate_of(row),
        Redrive(
            row.redrive,
            unpacked_ranges(row.redriving),
            row.redrive_ms,
            row.redrive_whole_keys,
        ),
        Errand(row.errand, row.errand_kind, unpacked_ranges(row.errand_ranges)),
        Hurried(row.hurried, unpacked_ranges(row.hurried_ranges)),
    )


def queue_row(group: GroupRow, queue: QueueState) -> ProgressRow:
    """The row of a queue. It grows with gaps between done entries, not with those that wait."""
    return ProgressRow(
        group.group_id,
        *queue.stream,
        floor=queue.progress.floor,
        ranges=packed_ranges(queue.progress.ranges),
        frontier=queue.progress.floor,
        attempts=packed_attempts(queue.attempts),
        finished=False,
        cursor_generation=0,
        applied_end=queue.applied_end,
        redrive=queue.redrive.operation,
        redriving=packed_ranges(queue.redrive.ranges),
        redrive_ms=queue.redrive.over_ms,
        redrive_whole_keys=queue.redrive.whole_keys,
        errand=queue.errand.operation,
        errand_kind=queue.errand.what,
        errand_ranges=packed_ranges(queue.errand.ranges),
        hurried=queue.hurried.operation,
        hurried_ranges=packed_ranges(queue.hurried.ranges),
        **fate_columns(queue.fate),
    )

"""The durable state, and what may be said because of it.

Invariant: it learns of a commit at the moment when that takes effect, so a leader's messages are
judged by what would be left if everything died right now.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.groups.move_rules import check_known, check_written_move
from dss_sim.groups.violation import Violation
from dssd.leaders.progress_columns import progress_of, unpacked_ranges
from dssd.machines.leader.state import Leader
from dssd.machines.messages import (
    Grant,
    LeaseStreams,
    ProgressSaved,
    Revoked,
    SessionId,
    ToBorrower,
    UpdateStreams,
)
from dssd.store.port import Delete, Put, Write
from dssd.store.rows import (
    GrantRow,
    LeaderRow,
    MadeMoveRow,
    PendingMoveRow,
    ProgressRow,
    StreamSetRow,
)

_NOTHING: Mapping[str, Any] = {
    "floor": 0, "ranges": b"", "frontier": 0, "attempts": b"", "cursor_generation": 0,
    "failures": b"", "doubts": b"", "rests": b"", "rest_delays": b"",
    "acked_count": 0, "filtered_count": 0, "lost_count": 0, "damaged_count": 0, "moved_count": 0,
    "retried_count": 0, "marked_below": 0,
}  # fmt: skip
"""The row of a stream without a row."""

GroupStream = tuple[int, StreamId]
"""A group and a stream of it."""


class Ledger:
    """Progress and grants in the store."""

    def __init__(self) -> None:
        self._progress: dict[GroupStream, ProgressRow] = {}
        self._grant_epochs: dict[GroupStream, int] = {}
        self._set_versions: dict[tuple[int, SessionId], int] = {}
        self._leader_epochs: dict[int, int] = {}
        self._pending: dict[GroupStream, PendingMoveRow] = {}
        """Moves that operations wait for."""
        self._moved: dict[GroupStream, tuple[int, Progress]] = {}
        """The grant epoch up to which cursors were moved, and all that was durable before."""
        self._authors: dict[int, tuple[Sequence[Write], int, int]] = {}
        """Commits under way by their identity, kept so that no other one gets the same."""

    def expect(self, writes: Sequence[Write], group_id: int, leader_epoch: int) -> None:
        """A leader asks for a commit."""
        self._authors[id(writes)] = writes, group_id, leader_epoch

    def take(self, writes: Sequence[Write]) -> list[tuple[MadeMoveRow, PendingMoveRow]]:
        """A commit took effect; returns its moves of cursors, and the operations that asked for
        them.

        Raises:
            Violation: it forgets hand-outs, or its leader leads no more.
        """
        _, led, leader_epoch = self._authors.pop(id(writes), (writes, 0, 0))
        if leader_epoch < self._leader_epochs.get(led, 0):
            raise Violation("I12", f"a leader of epoch {leader_epoch} still commits")
        rows = [write.row for write in writes if isinstance(write, Put)]
        made = {
            StreamId(row.storage_topic_id, row.partition): row
            for row in rows
            if isinstance(row, MadeMoveRow)
        }
        moves: list[tuple[MadeMoveRow, PendingMoveRow]] = []
        for row in rows:
            if isinstance(row, ProgressRow):
                stream = StreamId(row.storage_topic_id, row.partition)
                self._take_progress(row, stream, made.get(stream))
                if stream in made:
                    moves.append((made[stream], self._pending[row.group_id, stream]))
            elif isinstance(row, GrantRow):
                lent = row.group_id, StreamId(row.storage_topic_id, row.partition)
                self._grant_epochs[lent] = row.grant_epoch
            elif isinstance(row, StreamSetRow):
                self._set_versions[row.group_id, row.session_id] = row.set_version
            elif isinstance(row, LeaderRow):
                self._leader_epochs[row.group_id] = row.leader_epoch
        self._note_pending(writes)
        return moves

    def _note_pending(self, writes: Sequence[Write]) -> None:
        for write in writes:
            match write:
                case Put(PendingMoveRow() as row):
                    stream = StreamId(row.storage_topic_id, row.partition)
                    self._pending[row.group_id, stream] = row
                case Delete(kind, (int() as group_id, int() as part, int() as partition)):
                    if kind is PendingMoveRow:
                        self._pending.pop((group_id, StreamId(part, partition)), None)

    def _take_progress(self, row: ProgressRow, stream: StreamId, made: MadeMoveRow | None) -> None:
        lent = row.group_id, stream
        before = self._progress.get(lent)
        # A stream that was made after its group had no row.
        before = before or replace(row, **_NOTHING)
        check_written_move(before, row, made, self._pending.get(lent))
        check_known(before, row, made)
        if made is not None:
            was = Progress(made.floor_before, unpacked_ranges(made.ranges_before))
            known = self._moved.get(lent, (0, was))[1]
            self._moved[lent] = self._grant_epochs.get(lent, 0), known.merged(was)
        self._progress[lent] = row

    def check_concluded(
        self,
        group_id: int,
        number: int,
        left: Collection[StreamId],
        cancelled: Collection[StreamId],
    ) -> None:
        """S24: an operation is called done once all that it asked for is durable.

        ``left``: the streams that it has not moved; ``cancelled``: those that it need not move.

        Raises:
            Violation: a move is pending, or was not made though nobody cancelled it.
        """
        for stream in left:
            pending = self._pending.get((group_id, stream))
            if (pending is not None and pending.number == number) or stream not in cancelled:
                raise Violation("S24", f"operation {number} is not done: {stream} was not moved")

    def check_said(self, group_id: int, leader: Leader, message: ToBorrower) -> None:
        """S3, S2: a grant, a final answer or progress is sent only once it is durable.

        Raises:
            Violation: this message promises more than the store has.
        """
        if isinstance(message, Grant | LeaseStreams | UpdateStreams):
            for granted in message.streams:
                if granted.grant_epoch > self._grant_epochs.get((group_id, granted.stream), 0):
                    raise Violation("S3", f"granted before its epoch is durable: {granted}")
        elif isinstance(message, ProgressSaved):
            self.check_kept(group_id, message.stream, message.progress, message.grant_epoch)
            for queue in message.queues:
                self.check_kept(group_id, queue.stream, queue.progress, message.grant_epoch)
        elif isinstance(message, Revoked):
            lent = leader.streams[message.stream]
            # In the same step its holder may have been lost, and its cursor moved.
            present = lent.grant_epoch == message.grant_epoch
            progress = lent.progress if present else message.progress
            self.check_kept(group_id, message.stream, progress, message.grant_epoch)

        if isinstance(message, LeaseStreams | UpdateStreams):
            session_id = leader.members[message.borrower_id].session_id
            if message.version > self._set_versions.get((group_id, session_id), 0):
                raise Violation("S3", f"sent before its version is durable: {message}")

    def check_kept(self, group_id: int, stream: StreamId, said: Progress, grant_epoch: int) -> None:
        """S2: everything that leaders, sessions and users were told is durable under a grant is
        durable, or was until an operator moved the cursor.

        Raises:
            Violation: it is not.
        """
        kept = progress_of(self._progress.get((group_id, stream)))
        moved_epoch, was = self._moved.get((group_id, stream), (0, kept))
        if grant_epoch <= moved_epoch:
            kept = kept.merged(was)
        if kept.merged(said) != kept:
            raise Violation("S2", f"said of {stream} before it is durable: {said}, but {kept}")

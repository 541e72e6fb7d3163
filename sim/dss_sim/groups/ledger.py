"""What is durable, and what may be said because of it.

Invariant: it learns of a commit at the moment at which that takes effect, so what a leader says is
judged by what would be left if everything died right now.
"""

from collections.abc import Sequence

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.groups.machine_rules import check_kept
from dss_sim.groups.violation import Violation
from dssd.leaders.progress_columns import progress_of
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
from dssd.store.port import Put, Write
from dssd.store.rows import GrantRow, LeaderRow, ProgressRow, StreamSetRow

GroupStream = tuple[int, StreamId]
"""A group and a stream of it."""


class Ledger:
    """Progress and grants as the store has them."""

    def __init__(self) -> None:
        self._progress: dict[GroupStream, ProgressRow] = {}
        self._grant_epochs: dict[GroupStream, int] = {}
        self._set_versions: dict[tuple[int, SessionId], int] = {}
        self._leader_epochs: dict[int, int] = {}
        self._authors: dict[int, tuple[Sequence[Write], int, int]] = {}
        """Commits under way by their identity, each kept, so that no other gets the same."""

    def expect(self, writes: Sequence[Write], group_id: int, leader_epoch: int) -> None:
        """A leader asks for a commit."""
        self._authors[id(writes)] = writes, group_id, leader_epoch

    def take(self, writes: Sequence[Write]) -> None:
        """A commit took effect.

        Raises:
            Violation: what it says of hand-outs is less than before, or its leader leads no more.
        """
        _, led, leader_epoch = self._authors.pop(id(writes), (writes, 0, 0))
        if leader_epoch < self._leader_epochs.get(led, 0):
            raise Violation("I12", f"a leader of epoch {leader_epoch} still commits")
        for write in writes:
            if not isinstance(write, Put):
                continue
            row = write.row
            if isinstance(row, ProgressRow):
                lent = row.group_id, StreamId(row.storage_topic_id, row.partition)
                check_kept(self._progress.get(lent), row)
                self._progress[lent] = row
            elif isinstance(row, GrantRow):
                lent = row.group_id, StreamId(row.storage_topic_id, row.partition)
                self._grant_epochs[lent] = row.grant_epoch
            elif isinstance(row, StreamSetRow):
                self._set_versions[row.group_id, row.session_id] = row.set_version
            elif isinstance(row, LeaderRow):
                self._leader_epochs[row.group_id] = row.leader_epoch

    def check_said(self, group_id: int, leader: Leader, message: ToBorrower) -> None:
        """S3, S2: a grant, a final answer, a progress leave only once they are durable.

        Raises:
            Violation: this message promises more than the store has.
        """
        if isinstance(message, Grant | LeaseStreams | UpdateStreams):
            for granted in message.streams:
                if granted.grant_epoch > self._grant_epochs.get((group_id, granted.stream), 0):
                    raise Violation("S3", f"granted before its epoch is durable: {granted}")
        elif isinstance(message, ProgressSaved):
            self.check_kept(group_id, message.stream, message.progress)
        elif isinstance(message, Revoked):
            self.check_kept(group_id, message.stream, leader.streams[message.stream].progress)

        if isinstance(message, LeaseStreams | UpdateStreams):
            session_id = leader.members[message.borrower_id].session_id
            if message.version > self._set_versions.get((group_id, session_id), 0):
                raise Violation("S3", f"sent before its version is durable: {message}")

    def check_kept(self, group_id: int, stream: StreamId, said: Progress) -> None:
        """S2: of what leaders, sessions and users are told is durable, all is.

        Raises:
            Violation: it is not.
        """
        kept = progress_of(self._progress.get((group_id, stream)))
        if kept.merged(said) != kept:
            raise Violation("S2", f"said of {stream} before it is durable: {said}, but {kept}")

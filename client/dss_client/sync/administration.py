"""What is administered, from threads. Made by scripts/gen_sync.py (make docs).

Invariant: each method is that of the class of the same name in `dss_client`, awaited in the loop.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, BinaryIO

from dss_client._start_point import Start
from dss_client.access import Access as AsyncAccess
from dss_client.access import NewToken, Permission, Principal
from dss_client.answers import GroupDescription, StreamSums, Stuck, Verdict, WhyAnswer
from dss_client.backups import Backups as AsyncBackups
from dss_client.backups import MadeBackup, Told
from dss_client.changes import Change, Target
from dss_client.daemon import Daemon as AsyncDaemon
from dss_client.events import Event, EventPage
from dss_client.events import Events as AsyncEvents
from dss_client.group_values import Grant, Group, ShardedGroup
from dss_client.groups import Grants as AsyncGrants
from dss_client.groups import Groups as AsyncGroups
from dss_client.job_values import Job, JobChunk
from dss_client.jobs import Jobs as AsyncJobs
from dss_client.offsets import GroupOffsets
from dss_client.operation_values import Operation, OperationPlan
from dss_client.operations import Operations as AsyncOperations
from dss_client.queues import ErrorCounts, KeyCounts, NewestEntries, QueueEntry
from dss_client.queues import Queues as AsyncQueues
from dss_client.schedules import DueTime, Schedule, ScheduleDescription, ScheduleRun, Task
from dss_client.schedules import Schedules as AsyncSchedules
from dss_client.sessions import Sessions as AsyncSessions
from dss_client.sessions import SessionSummary
from dss_client.topics import LocatedRange, Topic, TopicSummary
from dss_client.topics import Topics as AsyncTopics
from dss_core.answers import DaemonStatus

if TYPE_CHECKING:
    from dss_client._client import Client
    from dss_client.sync._portal import Portal


class Administered:
    """What a client administers, by noun."""

    access: "Access"
    backups: "Backups"
    topics: "Topics"
    groups: "Groups"
    grants: "Grants"
    daemon: "Daemon"
    events: "Events"
    jobs: "Jobs"
    operations: "Operations"
    queues: "Queues"
    sessions: "Sessions"
    schedules: "Schedules"

    def _administer(self, portal: "Portal", client: "Client") -> None:
        """Make the parts, of those of a client that is open."""
        self.access = Access(portal, client.access)
        self.backups = Backups(portal, client.backups)
        self.topics = Topics(portal, client.topics)
        self.groups = Groups(portal, client.groups)
        self.grants = Grants(portal, client.grants)
        self.daemon = Daemon(portal, client.daemon)
        self.events = Events(portal, client.events)
        self.jobs = Jobs(portal, client.jobs)
        self.operations = Operations(portal, client.operations)
        self.queues = Queues(portal, client.queues)
        self.sessions = Sessions(portal, client.sessions)
        self.schedules = Schedules(portal, client.schedules)


class Access:
    """The principals of a daemon; reached as ``client.access``. All of it is for administrators."""

    def __init__(self, portal: "Portal", twin: AsyncAccess) -> None:
        self._portal = portal
        self._twin = twin

    def list(self) -> tuple[Principal, ...]:
        """Everybody, by name."""
        return self._portal.run(self._twin.list())

    def add_token(
        self, name: str, permissions: Sequence[Permission], *, expires_at_ms: int | None = None
    ) -> NewToken:
        """Make a token for somebody new.

        Raises:
            PrincipalExists: there is somebody of that name.
            IllegalName, IllegalArgument, IllegalFilter: an argument breaks its rule.
            OutcomeUnknown: perhaps it was added; remove it, and add it again.
        """
        return self._portal.run(
            self._twin.add_token(name, permissions, expires_at_ms=expires_at_ms)
        )

    def add_certificate(
        self, name: str, permissions: Sequence[Permission], *, expires_at_ms: int | None = None
    ) -> Principal:
        """Admit the holder of a certificate of that name.

        Raises:
            PrincipalExists: there is somebody of that name.
            IllegalArgument, IllegalFilter: an argument breaks its rule.
        """
        return self._portal.run(
            self._twin.add_certificate(name, permissions, expires_at_ms=expires_at_ms)
        )

    def edit(
        self, name: str, permissions: Sequence[Permission], *, expires_at_ms: int | None = None
    ) -> Principal:
        """Replace the permissions and the expiry of a principal; its running calls end, and clients
        reconnect.

        Args:
            name: with its kind, ``token:NAME`` or ``cert:NAME``.
            permissions: all that they have from then on.
            expires_at_ms: when they end; never where absent.

        Raises:
            PrincipalNotFound: there is nobody of that name.
            IllegalArgument, IllegalFilter: an argument breaks its rule.
        """
        return self._portal.run(self._twin.edit(name, permissions, expires_at_ms=expires_at_ms))

    def allow(self, name: str, permissions: Sequence[Permission]) -> Principal:
        """Give a principal more permissions; it keeps those that it has. Its running calls end, and
        clients reconnect.

        Args:
            name: with its kind, ``token:NAME`` or ``cert:NAME``.

        Raises:
            PrincipalNotFound: there is nobody of that name.
            IllegalArgument, IllegalFilter: an argument breaks its rule.
        """
        return self._portal.run(self._twin.allow(name, permissions))

    def rotate_token(self, name: str, *, both_for_ms: int = 0) -> NewToken:
        """Make a new token for a principal; the previous one is accepted for so long, too.

        Raises:
            PrincipalNotFound: nobody of that name has a token.
            IllegalArgument: it would be too long.
        """
        return self._portal.run(self._twin.rotate_token(name, both_for_ms=both_for_ms))

    def confirm(self, names: Sequence[str] = ()) -> tuple[Principal, ...]:
        """Confirm principals that a restore from a backup suspended; returns them.

        Args:
            names: with their kinds; all that are suspended where none is given.

        Raises:
            PrincipalNotFound: there is nobody of a name; nothing was changed.
        """
        return self._portal.run(self._twin.confirm(names))

    def remove(self, name: str, *, if_exists: bool = False) -> bool:
        """Remove a principal; returns whether there was one.

        Args:
            name: with its kind, ``token:NAME`` or ``cert:NAME``.
            if_exists: it is no error where there is none.

        Raises:
            PrincipalNotFound: there is nobody of that name.
        """
        return self._portal.run(self._twin.remove(name, if_exists=if_exists))


class Backups:
    """Makes backups; reached as ``client.backups``. For administrators."""

    def __init__(self, portal: "Portal", twin: AsyncBackups) -> None:
        self._portal = portal
        self._twin = twin

    def create(
        self, directory: str | os.PathLike[str], *, bytes_s: int = 0, told: Told | None = None
    ) -> MadeBackup:
        """Write a backup into a directory of backups; it is made where it is not there.

        Files of an earlier backup there that have not changed since are not sent again.

        Args:
            directory: on this machine, outside of any data directory.
            bytes_s: how many bytes a second are taken; 0: as many as come.
            told: called as it goes on.

        Raises:
            BackupTargetUnfit, BackupUnderWay, NoRoomForBackup: nothing was begun.
            BackupFailed: what was written is removed by the next one.
            DssError: the daemon refuses, or the connection was lost.
        """
        return self._portal.run(self._twin.create(directory, bytes_s=bytes_s, told=told))

    def write_tar(
        self, file: BinaryIO, *, bytes_s: int = 0, told: Told | None = None
    ) -> MadeBackup:
        """Write a whole backup as a tar; what is unpacked of it is a directory of backups.

        Args:
            file: is written in order, and need not be one that can be sought in.
            bytes_s, told: as for `create`.

        Raises:
            BackupFailed: the file cannot be written.
            DssError: the daemon refuses, or the connection was lost.
        """
        return self._portal.run(self._twin.write_tar(file, bytes_s=bytes_s, told=told))


class Topics:
    """Administration of topics; reached as ``client.topics``."""

    def __init__(self, portal: "Portal", twin: AsyncTopics) -> None:
        self._portal = portal
        self._twin = twin

    def create(
        self,
        name: str,
        *,
        partitions: int,
        factor: int | None = None,
        router: str = "block",
        patterns: Sequence[str] = (),
        durability: str = "sync",
        retention_ms: int | None = None,
        retention_bytes: int | None = None,
        if_not_exists: bool = False,
    ) -> Topic:
        """Create a topic, or describe it where it exists already and that is allowed.

        Raises:
            TopicExists: and ``if_not_exists`` was not given.
            TopicsOverlap: another topic owns some of the subjects.
            IllegalName, IllegalFilter, IllegalArgument: a value breaks its rule.
        """
        return self._portal.run(
            self._twin.create(
                name,
                partitions=partitions,
                factor=factor,
                router=router,
                patterns=patterns,
                durability=durability,
                retention_ms=retention_ms,
                retention_bytes=retention_bytes,
                if_not_exists=if_not_exists,
            )
        )

    def list(self) -> tuple[TopicSummary, ...]:
        """Every topic, by name."""
        return self._portal.run(self._twin.list())

    def describe(self, name: str) -> Topic:
        """One topic with the bounds of its streams.

        Raises:
            TopicNotFound: there is none of this name.
        """
        return self._portal.run(self._twin.describe(name))

    def locate(
        self,
        name: str,
        *,
        start: str | datetime | None = None,
        end: str | datetime | None = None,
        dead_letters: str = "",
    ) -> tuple[LocatedRange, ...]:
        """Where the records lie that were appended from one time on and before another.

        Every stream has a range, an empty one too; those of older storage topics come first. All
        that is kept is told where no times are given.

        With a group's ``dead_letters``, the ranges are those of the topic's dead letters there now,
        and the times are those of their deaths. A stream has several ranges or none, and their
        offsets are offsets of the queue.

        Raises:
            TopicNotFound: there is none of this name.
            IllegalTime, IllegalArgument: a time breaks its rule.
            GroupNotFound, GroupAmbiguous, NoneIsDead, TopicNotInGroup, DeadLettersScattered: there
                are no such dead letters, or too many pieces of them.
            DaemonReadsNoDeadLetters: it is of a version before.
        """
        return self._portal.run(
            self._twin.locate(name, start=start, end=end, dead_letters=dead_letters)
        )

    def remove(self, name: str, *, force: bool = False, if_exists: bool = False) -> bool:
        """Remove a topic with all that it keeps; tells whether there was one.

        Raises:
            TopicNotFound: there is none, and ``if_exists`` was not given.
            TopicInUse: groups read it, and ``force`` was not given.
        """
        return self._portal.run(self._twin.remove(name, force=force, if_exists=if_exists))


class Groups:
    """Administration of groups; reached as ``client.groups``."""

    def __init__(self, portal: "Portal", twin: AsyncGroups) -> None:
        self._portal = portal
        self._twin = twin

    def create(
        self,
        filter: str,
        *,
        start: Start = None,
        ack_wait: float | None = None,
        if_not_exists: bool = False,
        protocol: str | None = None,
        on_damage: str | None = None,
        max_deliver: int | None = None,
        backoff: Sequence[float] = (),
        queue_records: int | None = None,
        queue_bytes: int | None = None,
        ordered: bool | None = None,
        on_dead_letter: str | None = None,
        keyless: str | None = None,
        allocation: str | None = None,
        shards: int | None = None,
        metadata: str = "",
        unused: float | None = None,
    ) -> Group:
        """Declare the group of ``$share/G/F`` or ``$queue/G/F``; ``ack_wait`` is in seconds.

        ``protocol`` is ``borrow``, the default, or ``lease``. ``on_damage`` is ``pass``, the
        default: confirmed damaged records are reported and skipped; or ``stall``: delivery stops
        there. With ``max_deliver`` a record that fails waits in a retry queue, and after so many
        attempts it is among the dead letters; without, it comes again for ever. ``backoff`` has the
        seconds after each failure; ``queue_records`` and ``queue_bytes`` bound what the queues of a
        stream hold.

        An ``ordered`` group, which has ``max_deliver`` and reads one topic, hands out records of a
        key one at a time and in order, also through retries: one that fails holds up its own key.
        Once it is dead, later ones wait with it (``on_dead_letter="block"``, the default) or go on
        (``skip``). Records without a key come without an order, or with ``keyless="dead"`` are dead
        letters at once. It is shared out by ``shards``, or with ``allocation="sticky"`` by streams.

        ``metadata``, a text of at most 4 KiB, is kept for whoever made the group. It is removed
        once no client has subscribed to it for ``unused`` seconds, if that is given.

        Raises:
            GroupExists, GroupExistsOtherwise: it is there, or with another setting.
            GroupOfAnotherKind, StartConflict: it is a queue and this is none, or began elsewhere.
            IllegalArgument, ShardCountUnfit, IllegalFilter, IllegalTime: a value breaks its rule.
            QueueWithoutGroup: a queue has a name.
            OrderNeedsOneTopic: it cannot be ordered.
            DaemonKnowsNoQueues, DaemonKnowsNoOrder, DaemonKnowsNoMetadata, DaemonKnowsNoShards: it
                is older.
        """
        return self._portal.run(
            self._twin.create(
                filter,
                start=start,
                ack_wait=ack_wait,
                if_not_exists=if_not_exists,
                protocol=protocol,
                on_damage=on_damage,
                max_deliver=max_deliver,
                backoff=backoff,
                queue_records=queue_records,
                queue_bytes=queue_bytes,
                ordered=ordered,
                on_dead_letter=on_dead_letter,
                keyless=keyless,
                allocation=allocation,
                shards=shards,
                metadata=metadata,
                unused=unused,
            )
        )

    def list(self, *, all: bool = False, filter: str = "", sort: str = "") -> tuple[Group, ...]:
        """The groups, asked for page by page.

        Args:
            all: private subscriptions too.
            filter: conditions joined by commas, ``lag>1000,state=stalled``.
            sort: a field, the greatest first, or texts from a to z; ``-`` before it turns it
                round. By name where none is given.

        Raises:
            FilterUnreadable, OrderUnreadable: the filter or the order breaks the grammar.
        """
        return self._portal.run(self._twin.list(all=all, filter=filter, sort=sort))

    def shards(self, group: str) -> "ShardedGroup":
        """How a group that is shared out by shards stands, shard by shard.

        Raises:
            GroupNotFound, GroupAmbiguous: there is none, or several.
            ShardsNeedOrder: it has no shards.
            OrderNeedsOneTopic: the topic that it reads is gone.
        """
        return self._portal.run(self._twin.shards(group))

    def describe(self, group: str) -> "GroupDescription":
        """One group by NAME, NAME@FILTER or ``$share/NAME/FILTER``.

        Raises:
            GroupNotFound: there is none.
            GroupAmbiguous: several have the name.
        """
        return self._portal.run(self._twin.describe(group))

    def offsets(self, group: str, *, streams: Sequence[str] = ()) -> "GroupOffsets":
        """Where a group stands, for `ImportOffsets` into another group or daemon.

        Args:
            group: as for `describe`.
            streams: only these; all that the group reads where empty.

        Raises:
            GroupNotFound, GroupAmbiguous: there is none, or several have the name.
            StreamNotRead: the group does not read one of the streams.
        """
        return self._portal.run(self._twin.offsets(group, streams=streams))

    def why(
        self,
        group: str,
        *,
        stream: str = "",
        offset: int | None = None,
        key: bytes | None = None,
        topic: str = "",
    ) -> "WhyAnswer":
        """Where a record stands for a group, and why it does not come.

        Args:
            group: as for `describe`.
            stream: with ``offset``, the record; with ``key``, look only there.
            offset: of the record; with ``key`` and ``stream``, look from there on.
            key: of the records: the oldest that are not done, else the newest done one.
            topic: with ``key``, look only there.

        Raises:
            GroupNotFound, GroupAmbiguous: there is none, or several have the name.
            TopicNotFound, StreamNotFound, StreamNotRead: the group does not read the stream.
            OffsetNotWritten: the stream ends before the offset.
            KeyNotFound: no record of the key is kept.
            IllegalArgument: neither a stream and an offset nor a key was named.
        """
        return self._portal.run(
            self._twin.why(group, stream=stream, offset=offset, key=key, topic=topic)
        )

    def stuck(self, group: str | None = None, *, after: float | None = None) -> "tuple[Stuck, ...]":
        """Which groups and streams do not move though they have records, and why.

        Args:
            group: as for `describe`; all where none is given.
            after: seconds without progress after which a stream counts as stuck; a minute where
            none is given.

        Raises:
            GroupNotFound, GroupAmbiguous: there is none, or several have the name.
        """
        return self._portal.run(self._twin.stuck(group, after=after))

    def verify(
        self,
        group: str,
        *,
        streams: Sequence[str] = (),
        scan: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> "tuple[StreamSums, ...]":
        """Whether the records that a group has finished, by kind, add up with what was appended.

        Args:
            group: as for `describe`.
            streams: only these; all that the group reads where empty.
            scan: also count anew what the log still has; the daemon paces that.
            progress: called with how many offsets of how many a scan has looked at.

        Raises:
            GroupNotFound, GroupAmbiguous: there is none, or several have the name.
            StreamNotRead: the group does not read one of the streams.
            LogUnreadable: a scan met what cannot be read.
            Overloaded: somebody else scans.
        """
        return self._portal.run(
            self._twin.verify(group, streams=streams, scan=scan, progress=progress)
        )

    def remove(self, group: str, *, if_exists: bool = False, if_unused: bool = False) -> bool:
        """Remove a group and its progress; tells whether there was one.

        Raises:
            GroupNotFound: there is none, and ``if_exists`` was not given.
            GroupInUse: a client has subscribed to it, and ``if_unused`` was given.
            DaemonKnowsNoMetadata: it is older, and would remove a group that is in use.
            GroupAmbiguous: several have the name.
        """
        return self._portal.run(self._twin.remove(group, if_exists=if_exists, if_unused=if_unused))


class Grants:
    """Which member holds which stream; reached as ``client.grants``."""

    def __init__(self, portal: "Portal", twin: AsyncGrants) -> None:
        self._portal = portal
        self._twin = twin

    def list(self, group: str | None = None) -> tuple[Grant, ...]:
        """The grants of one group, or of all.

        Raises:
            GroupNotFound: there is no such group.
            GroupAmbiguous: several have the name.
        """
        return self._portal.run(self._twin.list(group))


class Daemon:
    """Questions to the daemon itself; reached as ``client.daemon``."""

    def __init__(self, portal: "Portal", twin: AsyncDaemon) -> None:
        self._portal = portal
        self._twin = twin

    def status(self) -> DaemonStatus:
        """How the daemon stands.

        Raises:
            Unreachable: no daemon answers.
        """
        return self._portal.run(self._twin.status())

    def findings(self, *, topic: str = "", client_id: str = "") -> "tuple[Verdict, ...]":
        """What the daemon looked at, and what is wrong: good findings too, with their codes.

        Args:
            topic: only what concerns this topic.
            client_id: only what concerns the session of this client.

        Raises:
            TopicNotFound: there is no such topic.
        """
        return self._portal.run(self._twin.findings(topic=topic, client_id=client_id))


class Events:
    """Reads events; reached as ``client.events``."""

    def __init__(self, portal: "Portal", twin: AsyncEvents) -> None:
        self._portal = portal
        self._twin = twin

    def list(
        self,
        *,
        after: int = 0,
        since: str | datetime | None = None,
        severity: str = "info",
        subject: str = "",
        codes: Sequence[str] = (),
        principal: str = "",
        latest: int | None = None,
    ) -> EventPage:
        """The events that are kept.

        Args:
            after: only those with a higher number.
            since: only those that were told at this time or later; a time of the shared grammar.
            severity: only those that are as bad as this, or worse.
            subject: only those whose subject begins with this.
            codes: only those with one of these codes.
            principal: only those that tell what this one did.
            latest: only so many, the last ones.

        Raises:
            IllegalTime, IllegalArgument: an argument breaks its rule.
            DssError: the daemon does not answer.
        """
        return self._portal.run(
            self._twin.list(
                after=after,
                since=since,
                severity=severity,
                subject=subject,
                codes=codes,
                principal=principal,
                latest=latest,
            )
        )

    def watch(
        self,
        *,
        after: int | None = None,
        since: str | datetime | None = None,
        severity: str = "info",
        subject: str = "",
    ) -> Iterator[Event]:
        """Events as they come; an event that repeats comes once.

        Args:
            after: begin behind this number, with what is kept; else with what comes from now on.
            since, severity, subject: as for `list`.

        Raises:
            IllegalTime, IllegalArgument: an argument breaks its rule.
            DssError: the daemon refuses, or was never there. A connection that is lost later is
                made again.
        """
        return self._portal.iterate(
            self._twin.watch(after=after, since=since, severity=severity, subject=subject)
        )


class Jobs:
    """Reached as ``client.jobs``."""

    def __init__(self, portal: "Portal", twin: AsyncJobs) -> None:
        self._portal = portal
        self._twin = twin

    def list(self) -> list[Job]:
        """All jobs, the oldest first.

        Raises:
            Unreachable: the daemon does not answer.
        """
        return self._portal.run(self._twin.list())

    def get(self, job: str) -> Job:
        """One job, by its name or number.

        Raises:
            JobNotFound: there is none.
        """
        return self._portal.run(self._twin.get(job))

    def chunks(self, job: str, *, after: int | None = None) -> Iterator[JobChunk]:
        """The manifest of a job, in order; with ``after``, what comes behind that number.

        Raises:
            JobNotFound: there is none.
        """
        return self._portal.iterate(self._twin.chunks(job, after=after))

    def ended(self, job: str) -> Job:
        """Wait until a job has ended; returns it as done.

        Raises:
            JobNotFound: there is none.
            JobNotDone: it failed, or was cancelled.
        """
        return self._portal.run(self._twin.ended(job))


class Operations:
    """Plans, applies and follows operations; reached as ``client.operations``."""

    def __init__(self, portal: "Portal", twin: AsyncOperations) -> None:
        self._portal = portal
        self._twin = twin

    def plan(self, change: Change) -> OperationPlan:
        """What applying the change would do now; nothing is changed.

        Raises:
            DssError: why it cannot be applied, or the daemon does not answer.
        """
        return self._portal.run(self._twin.plan(change))

    def apply(
        self,
        change: Change | OperationPlan,
        *,
        if_revision: int | None = None,
        reason: str = "",
        operation_id: str | None = None,
    ) -> Operation:
        """Make a change, or exactly what was planned; it is durable when this returns.

        The operation may go on: `ended` waits for it. After a lost connection the call is
        repeated once, when a daemon is there again.

        Args:
            change: a change, or the plan of one.
            if_revision: of the subject; that of the plan where a plan is given. A change that finds
                nothing to do leaves it as it is, and is refused for an older one like any other.
            reason: kept with the operation, for whoever asks why.
            operation_id: the caller's own, at most one change a value; made up where absent.

        Raises:
            RevisionMoved: something else changed the subject meanwhile; nothing was done.
            OperationInProgress, OperationIdReused, NotUndoable, OffsetsDoNotFit: and the other
                conditions of the single changes; nothing was done.
            OutcomeUnknown: the connection was lost, and so it was when the call was repeated.
        """
        return self._portal.run(
            self._twin.apply(
                change, if_revision=if_revision, reason=reason, operation_id=operation_id
            )
        )

    def rewind(
        self,
        group: str,
        *,
        to: Target | None = None,
        by: int | timedelta | None = None,
        streams: Sequence[str] = (),
        reason: str = "",
    ) -> Operation:
        """Deliver records again, from a target, or from so many records or so much time back.

        Raises:
            DssError: as for `apply`.
        """
        return self._portal.run(
            self._twin.rewind(group, to=to, by=by, streams=streams, reason=reason)
        )

    def skip(
        self,
        group: str,
        *,
        to: Target | None = None,
        by: int | timedelta | None = None,
        streams: Sequence[str] = (),
        reason: str = "",
    ) -> Operation:
        """Pass over records, up to a target, or so many records or so much time.

        Raises:
            DssError: as for `apply`.
        """
        return self._portal.run(
            self._twin.skip(group, to=to, by=by, streams=streams, reason=reason)
        )

    def undo(self, number: int, *, reason: str = "") -> Operation:
        """Take an operation back; that is an operation of its own.

        Raises:
            NotUndoable, OperationNotFound: it cannot be, or is not there.
            DssError: as for `apply`.
        """
        return self._portal.run(self._twin.undo(number, reason=reason))

    def get(self, number: int) -> Operation:
        """One operation, with its streams.

        Raises:
            OperationNotFound: there is none of this number.
        """
        return self._portal.run(self._twin.get(number))

    def list(
        self, *, subject: str = "", state: str = "", latest: int | None = None
    ) -> tuple[Operation, ...]:
        """The operations that are kept, the newest first.

        Args:
            subject: of this group, NAME or NAME@FILTER, this topic or this client only.
            state: in this state only.
            latest: at most so many.
        """
        return self._portal.run(self._twin.list(subject=subject, state=state, latest=latest))

    def named(self, operation_id: str) -> Operation | None:
        """The operation that was applied under this id; None where none is kept."""
        return self._portal.run(self._twin.named(operation_id))

    def watch(self, number: int) -> Iterator[Operation]:
        """An operation as it stands and as it goes on, until it has ended.

        Raises:
            OperationNotFound: there is none of this number.
            DssError: the daemon refuses, or was never there. A connection that is lost later is
                made again.
        """
        return self._portal.iterate(self._twin.watch(number))

    def ended(self, number: int) -> Operation:
        """Wait until an operation has ended, however it did.

        Raises:
            DssError: as for `watch`.
        """
        return self._portal.run(self._twin.ended(number))

    def cancel(self, number: int, *, reason: str = "") -> Operation:
        """Cancel the rest of an operation; what it has done stays done.

        Raises:
            OperationNotFound, OperationEnded: it is not there, or there is nothing left of it.
        """
        return self._portal.run(self._twin.cancel(number, reason=reason))


class Queues:
    """Retry queues and dead letters of groups; reached as ``client.queues``."""

    def __init__(self, portal: "Portal", twin: AsyncQueues) -> None:
        self._portal = portal
        self._twin = twin

    def dead_letters(
        self,
        group: str,
        *,
        error: str = "",
        key: bytes | None = None,
        stream: str = "",
        offset: int | None = None,
        client_id: str = "",
        start_us: int | None = None,
        end_us: int | None = None,
        attempt: int = 0,
        whole: bool = False,
    ) -> Iterator[QueueEntry]:
        """The dead letters, stream by stream, the oldest of each first.

        Args:
            group: NAME, NAME@FILTER or ``$share/NAME/FILTER``.
            error: only those of this fingerprint, or of one that begins so, or of this cause.
            key: only those of this key.
            stream: only of records of this stream, ``orders/0/3``.
            offset: with ``stream``: only of the record there.
            client_id: only what this client had last.
            start_us: only what came to the queue then or later.
            end_us: only what came before then.
            attempt: only what failed so often, or more.
            whole: with payloads and headers.

        Raises:
            GroupNotFound, GroupAmbiguous: there is none, or several have the name.
            IllegalArgument, IllegalName: an argument breaks its rule.
        """
        return self._portal.iterate(
            self._twin.dead_letters(
                group,
                error=error,
                key=key,
                stream=stream,
                offset=offset,
                client_id=client_id,
                start_us=start_us,
                end_us=end_us,
                attempt=attempt,
                whole=whole,
            )
        )

    def retries(
        self,
        group: str,
        *,
        error: str = "",
        key: bytes | None = None,
        stream: str = "",
        offset: int | None = None,
        client_id: str = "",
        start_us: int | None = None,
        end_us: int | None = None,
        attempt: int = 0,
        whole: bool = False,
    ) -> Iterator[QueueEntry]:
        """What waits in the retry queues; arguments and errors as of `dead_letters`."""
        return self._portal.iterate(
            self._twin.retries(
                group,
                error=error,
                key=key,
                stream=stream,
                offset=offset,
                client_id=client_id,
                start_us=start_us,
                end_us=end_us,
                attempt=attempt,
                whole=whole,
            )
        )

    def newest(
        self, group: str, count: int, *, level: str = "dead", whole: bool = False
    ) -> NewestEntries:
        """The newest entries of ``dead`` or ``retry``.

        Raises:
            As `dead_letters`.
        """
        return self._portal.run(self._twin.newest(group, count, level=level, whole=whole))

    def peek(
        self,
        group: str,
        *,
        stream: str = "",
        offset: int | None = None,
        newest: int = 5,
        level: str = "dead",
    ) -> tuple[QueueEntry, ...]:
        """Whole entries: those of one record, else the newest.

        Raises:
            As `dead_letters`.
        """
        return self._portal.run(
            self._twin.peek(group, stream=stream, offset=offset, newest=newest, level=level)
        )

    def errors(self, group: str, *, level: str = "dead", at_most: int | None = None) -> ErrorCounts:
        """How many entries there are of each error; of the oldest so many at least, if not of all.

        Raises:
            As `dead_letters`.
        """
        return self._portal.run(self._twin.errors(group, level=level, at_most=at_most))

    def keys(
        self, group: str, *, level: str = "dead", error: str = "", at_most: int | None = None
    ) -> KeyCounts:
        """How many entries, of an error, there are of each key; of so many at least, if not of all.

        Raises:
            As `dead_letters`.
        """
        return self._portal.run(self._twin.keys(group, level=level, error=error, at_most=at_most))


class Sessions:
    """The sessions of a daemon; reached as ``client.sessions``."""

    def __init__(self, portal: "Portal", twin: AsyncSessions) -> None:
        self._portal = portal
        self._twin = twin

    def list(self) -> tuple[SessionSummary, ...]:
        """Every session, by client id."""
        return self._portal.run(self._twin.list())


class Schedules:
    """The schedules of a daemon; reached as ``client.schedules``."""

    def __init__(self, portal: "Portal", twin: AsyncSchedules) -> None:
        self._portal = portal
        self._twin = twin

    def list(self) -> tuple[Schedule, ...]:
        """Every schedule, by name."""
        return self._portal.run(self._twin.list())

    def describe(self, name: str) -> ScheduleDescription:
        """One schedule, when it is due, and its runs.

        Raises:
            ScheduleNotFound: there is none of this name.
        """
        return self._portal.run(self._twin.describe(name))

    def preview(
        self, name: str = "", *, cron: str = "", time_zone: str = "", count: int = 5
    ) -> tuple[DueTime, ...]:
        """When a schedule is due next, or else a cron expression in a time zone.

        Raises:
            ScheduleNotFound, IllegalCron, IllegalTimeZone, IllegalArgument: it cannot be said.
        """
        return self._portal.run(
            self._twin.preview(name, cron=cron, time_zone=time_zone, count=count)
        )

    def trigger(self, name: str, *, reason: str = "") -> ScheduleRun:
        """Run it now, whether it is paused or not; returns once the run has its operation.

        Raises:
            ScheduleNotFound: there is none of this name.
            ScheduleBusy: it has a run that has not ended, and none may run beside it.
        """
        return self._portal.run(self._twin.trigger(name, reason=reason))

    def tasks(self) -> tuple[Task, ...]:
        """What the daemon can do by the clock, by name."""
        return self._portal.run(self._twin.tasks())

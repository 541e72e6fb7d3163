"""The composition root: has every part opened, runs them, and has them closed in reverse.

::

    lock ▸ format ▸ addresses are free ▸ store ▸ log ▸ catalogue ▸ events ▸ groups ▸ registry
         ▸ sessions ▸ jobs ▸ operations ▸ questions ▸ schedules ▸ server ▸ health serving
         stop: health not serving ▸ calls end with exact reports ▸ server ▸ schedules ▸ operations
               ▸ sessions ▸ registry ▸ events ▸ log ▸ store ▸ lock

Invariant: one task group owns every task of the servicers and the daemon, and an exception that
escapes from a task ends `run` with that exception; a service outside the core lets only exceptions
of the core escape (`dssd.supervision.containment`). If a part cannot be opened, the parts opened
before it are closed.
"""

import asyncio
import logging
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from dss_api.v1 import (
    access_pb2_grpc,
    backups_pb2_grpc,
    daemon_pb2_grpc,
    events_pb2_grpc,
    groups_pb2_grpc,
    jobs_pb2_grpc,
    log_pb2_grpc,
    operations_pb2_grpc,
    queues_pb2_grpc,
    schedules_pb2_grpc,
    sessions_pb2_grpc,
    topics_pb2_grpc,
    watch_pb2_grpc,
)
from dss_core import arrow_layout
from dss_core.answers import DaemonStatus, Quarantined
from dss_core.errors import DiskFailed, DiskFull, NoRoomToStart
from dss_core.lane import DEAD_LETTERS, SHARDS, STEERED
from dssd import limits
from dssd.addresses import Address
from dssd.clock import Clock
from dssd.config import Config
from dssd.data_directory import DataDirectory
from dssd.descriptors import connections_max, open_files, open_files_max
from dssd.events.limits import ERRORS_SHOWN_MS
from dssd.heap_upkeep import HeapUpkeep
from dssd.leaders.queue_room import QueueRoom
from dssd.leaders.registry import BOOT_ID_BYTES
from dssd.leaders.retention_ahead import RetentionAhead
from dssd.leaders.topic_readers import readers_of
from dssd.life import End, Life, event_of_stop
from dssd.log.limits import PRODUCERS_MAX, PRODUCERS_RESERVE
from dssd.measuring.loop_delay import LoopDelay
from dssd.metrics.collection import MeasuredParts, collected
from dssd.metrics.server import MetricsServer
from dssd.opening import Parts, opened
from dssd.operations.pause_ends import PauseEnds
from dssd.questions.findings import FindingQuestions, bytes_of
from dssd.rpc.access import AccessServicer
from dssd.rpc.audit import Audit
from dssd.rpc.backups import BackupsServicer
from dssd.rpc.certificates import Certificates, certificate_facts, ends_ms_of
from dssd.rpc.daemon import DaemonServicer
from dssd.rpc.doors import Doors, check_free, operators_address
from dssd.rpc.entry import Entries
from dssd.rpc.errors import told
from dssd.rpc.events import EventsServicer
from dssd.rpc.greediest_peers import greediest
from dssd.rpc.groups import GrantsServicer, GroupsServicer
from dssd.rpc.jobs import JobsServicer
from dssd.rpc.log import LogServicer
from dssd.rpc.operations import OperationsServicer
from dssd.rpc.permits import Permits
from dssd.rpc.queues import QueuesServicer
from dssd.rpc.schedules import SchedulesServicer
from dssd.rpc.server import Capacity, Register
from dssd.rpc.sessions import SessionsServicer
from dssd.rpc.topics import TopicsServicer
from dssd.rpc.unix_peers import UnixPeers
from dssd.rpc.watch import WatchServicer
from dssd.service.heartbeat import Heartbeat
from dssd.service.notify import ServiceManager
from dssd.sessions.client_items import FEATURES
from dssd.sessions.limits import SESSIONS_MAX
from dssd.supervision.containment import Service, kept
from dssd.supervision.disk_room import DiskRoom
from dssd.topics.queue_trims import QueueTrims
from dssd.version import version

_LOG = logging.getLogger(__name__)


# Loaded with the daemon: at its first use it would hold the loop for some 100 ms.
assert arrow_layout


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a daemon reports to its process."""

    listening: Callable[[tuple[Address, ...], End], None]
    """It serves on these addresses, after a daemon that ended like this."""
    ending: Callable[[], None]
    """It serves no longer, and closes its parts."""
    failed: Callable[[BaseException], None]
    """Reports a failed disk or files of another daemon (a condition), or a failed thread of a part
    (any other error). The hook must end the process, because nothing more can be promised. May be
    called on any thread."""


@dataclass(frozen=True, slots=True)
class _Serving:
    """What serves, of a daemon that does."""

    parts: Parts
    doors: Doors
    sessions: SessionsServicer
    listening: tuple[Address, ...]


class Daemon:
    """One daemon on one data directory. Built once, run once."""

    def __init__(
        self, config: Config, hooks: Hooks, clock: Clock, manager: ServiceManager | None = None
    ) -> None:
        self._config = config
        self._hooks = hooks
        self._clock = clock
        self._manager = manager
        self._boot_id = os.urandom(BOOT_ID_BYTES)
        self._started_at_ms = clock.wall_ms()
        self._serving: _Serving | None = None
        self._life = Life(config.data_dir, clock)
        self._stop = asyncio.Event()
        self._crashed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def stop(self) -> None:
        """Let `run` come to its end, gracefully."""
        if not self._stop.is_set():
            self._stop.set()
            self._hooks.ending()

    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    async def run(self) -> None:
        """Serve until `stop`.

        Raises:
            DataDirectoryLocked, DataDirectoryNewer, IllegalConfig, AddressInUse, StoreDamaged,
            DiskFailed, NoRoomToStart: it cannot start.
            DataDirectoryReplaced, StoreUnguarded: its files are another's, or may become so.
            BaseExceptionGroup: a part of it failed, or a programmer's error came up.
        """
        with DataDirectory(self._config.data_dir) as directory, self._life:
            check_free(self._config.listen, self._config.metrics)
            tls = self._config.tls
            certificates = None if tls is None else Certificates(tls)
            async with AsyncExitStack() as stack:
                try:
                    parts = await opened(
                        self._config,
                        self._clock,
                        self._boot_id,
                        directory,
                        stack,
                        self._failed,
                        self._facts,
                    )
                except DiskFull as error:
                    raise NoRoomToStart(path=self._config.data_dir) from error
                try:
                    await self._serve(directory, parts, certificates)
                except BaseException:
                    self._hooks.ending()
                    raise

    def _failed(self, error: BaseException) -> None:
        """Runs on any thread, and does not return."""
        self._life.crashed(error)
        self._hooks.failed(error)

    async def _serve(
        self, directory: DataDirectory, parts: Parts, certificates: Certificates | None
    ) -> None:
        async with asyncio.TaskGroup() as tasks:
            log_servicer = LogServicer(
                parts.catalogue, parts.log, self._clock, tasks, parts.dead_letters
            )
            sessions = SessionsServicer(parts.sessions)
            operators = operators_address(directory)
            addresses = self._config.listen
            peers = UnixPeers(addresses if operators is None else (*addresses, operators))
            audit = Audit(parts.events, peers, self._clock)
            doors = Doors(
                self._registers(parts, log_servicer, sessions, peers),
                self._crash,
                audit,
                parts.events.note,
                Capacity(max(1, connections_max() // len(addresses))),
                known_bytes=lambda: parts.sessions.held_bytes,
                entries=self._entries(parts, certificates),
                addresses=addresses,
            )
            listening = doors.bind(operators)
            self._serving = _Serving(parts, doors, sessions, listening)
            services = self._metrics(parts, doors)
            services += self._services(parts, doors)
            note = parts.events.note
            background = [
                tasks.create_task(self._watch_for_crash(), name="watch for a crash"),
                tasks.create_task(parts.guard.run(note), name="data directory"),
                *(tasks.create_task(kept(name, run, note), name=name) for name, run in services),
            ]
            await doors.start()
            try:
                await doors.serving()
                await self._life.begin(parts.events, version())
                self._hooks.listening(listening, self._life.before)
                if self._manager is not None:
                    beats = Heartbeat(
                        self._manager, parts.log.reach_writer, lambda: self._status(parts)
                    )
                    beating = kept("heartbeat", beats.run, note)
                    background.append(tasks.create_task(beating, name="heartbeat"))
                await self._stop.wait()
                await self._end_calls(doors, log_servicer, parts)
                parts.events.note(event_of_stop(version()))
            finally:
                await doors.stop(limits.STOP_CANCEL_S if self._stop.is_set() else None)
                audit.flush()
                for task in background:
                    task.cancel()

    @staticmethod
    def _entries(parts: Parts, certificates: Certificates | None) -> Entries:
        if certificates is not None:
            certificates.tell(parts.events.note)
        return Entries(parts.access, Permits(parts.known), certificates)

    def _metrics(self, parts: Parts, doors: Doors) -> list[Service]:
        """What serves metrics, if that is wanted; its port is taken.

        Raises:
            AddressInUse: it cannot be taken.
        """
        if self._config.metrics is None:
            return []
        delay = LoopDelay()
        watched = MeasuredParts(
            store=parts.store,
            log=parts.log,
            catalogue=parts.catalogue,
            events=parts.events,
            sessions=parts.sessions,
            overviews=parts.questions.overviews,
            unread=parts.unread,
            loop_delay=delay,
            clock=self._clock,
            data_dir=self._config.data_dir,
            started_at_ms=self._started_at_ms,
            held=lambda: doors.held(parts.sessions.held_bytes),
            errors=told,
            certificate_ends_ms=lambda: ends_ms_of(doors.certificates),
            backup_at_ms=lambda: parts.backups.ledger.last_at_ms,
        )
        server = MetricsServer(lambda: collected(watched), parts.events.note)
        _LOG.info(
            "metrics at http://%s/metrics",
            server.bind(self._config.metrics).target,
            extra={"event": "metrics.listening"},
        )
        return [("metrics", server.run), ("loop delay", delay.run)]

    def _services(self, parts: Parts, doors: Doors) -> list[Service]:
        """What runs beside the calls until it is cancelled."""
        directory = self._config.data_dir
        ahead = RetentionAhead(
            parts.catalogue,
            parts.groups,
            parts.registry,
            parts.log,
            self._clock,
            parts.events.note,
            trusts_wall=parts.retention.trusts_wall,
        )
        seen = (parts.catalogue, parts.groups, parts.registry)
        pause_ends = PauseEnds(parts.store, parts.groups, parts.operations, self._clock)
        return [
            *doors.watches(),
            ("heap", HeapUpkeep().run),
            ("disk room", DiskRoom(directory, parts.log.is_read_only, parts.events.note).run),
            ("retention", parts.retention.run),
            ("retention ahead", ahead.run),
            ("trims of queues", QueueTrims(parts.store, parts.catalogue, parts.log).run),
            ("room of queues", QueueRoom(*seen, parts.log, parts.events.note).run),
            ("keep groups", parts.groups.keep),
            ("unused groups", parts.unused.keep),
            ("rows of removed topics", parts.gone.run),
            ("ends of pauses", pause_ends.run),
            ("schedules", parts.schedules.run),
            ("samples for questions", parts.questions.run),
            ("looks for watchers", parts.watches.run),
            ("leases of jobs", parts.jobs.run),
        ]

    async def _end_calls(self, doors: Doors, log_servicer: LogServicer, parts: Parts) -> None:
        _LOG.info("stopping", extra={"event": "daemon.stopping"})
        await doors.drain()
        log_servicer.stop()
        parts.events.stop()
        parts.watches.stop()
        try:
            async with asyncio.timeout(limits.STOP_CALLS_S):
                await parts.sessions.stop()
        except TimeoutError:
            _LOG.warning(
                "some sessions did not report in time; their records are redelivered",
                extra={"event": "sessions.cut-short"},
            )

    def _registers(
        self,
        parts: Parts,
        log_servicer: LogServicer,
        sessions: SessionsServicer,
        peers: UnixPeers,
    ) -> list[Register]:
        topics = TopicsServicer(
            parts.catalogue,
            parts.log,
            lambda topic: readers_of(topic, parts.groups.groups),
            parts.dead_letters,
        )
        groups = GroupsServicer(
            parts.groups, parts.registry, parts.catalogue, parts.questions, parts.unused
        )
        grants = GrantsServicer(parts.groups, parts.registry, parts.questions.sampler)
        queues = QueuesServicer(parts.questions.queues)
        events = EventsServicer(parts.events)
        operations = OperationsServicer(parts.operations, parts.catalogue, peers)
        watch = WatchServicer(parts.watches)
        schedules = SchedulesServicer(parts.schedules, parts.tasks)
        jobs = JobsServicer(parts.jobs, parts.acting.check_job)
        access = AccessServicer(parts.access)
        backups = BackupsServicer(parts.backups.snapshots, parts.backups.ledger)
        asked = (parts.questions, parts.catalogue, parts.log, parts.sessions, parts.events)
        views = (parts.operations, parts.schedules.views, parts.jobs.all, self._facts)
        daemon = DaemonServicer(self._facts, FindingQuestions(*asked, *views))
        reflected = []
        if self._config.reflection:
            from dssd.rpc import reflection

            reflected.append(reflection.register)
        return [
            *reflected,
            lambda server: topics_pb2_grpc.add_TopicsServicer_to_server(topics, server),
            lambda server: groups_pb2_grpc.add_GroupsServicer_to_server(groups, server),
            lambda server: groups_pb2_grpc.add_GrantsServicer_to_server(grants, server),
            lambda server: queues_pb2_grpc.add_QueuesServicer_to_server(queues, server),
            lambda server: log_pb2_grpc.add_LogServicer_to_server(log_servicer, server),
            lambda server: sessions_pb2_grpc.add_SessionsServicer_to_server(sessions, server),
            lambda server: daemon_pb2_grpc.add_DaemonServicer_to_server(daemon, server),
            lambda server: events_pb2_grpc.add_EventsServicer_to_server(events, server),
            lambda server: operations_pb2_grpc.add_OperationsServicer_to_server(operations, server),
            lambda server: watch_pb2_grpc.add_WatchServicer_to_server(watch, server),
            lambda server: schedules_pb2_grpc.add_SchedulesServicer_to_server(schedules, server),
            lambda server: jobs_pb2_grpc.add_JobsServicer_to_server(jobs, server),
            lambda server: access_pb2_grpc.add_AccessServicer_to_server(access, server),
            lambda server: backups_pb2_grpc.add_BackupsServicer_to_server(backups, server),
        ]

    def _crash(self, error: BaseException) -> None:
        if isinstance(error, DiskFailed):
            self._failed(error)
        if not self._crashed.done():
            self._crashed.set_exception(error)

    async def _watch_for_crash(self) -> None:
        await self._crashed

    async def _facts(self) -> DaemonStatus:
        serving = self._serving
        assert serving is not None, "it is asked by a call, or by a task"
        parts, doors = serving.parts, serving.doors
        topics = parts.catalogue.topics()
        streams = [stream for topic in topics for stream in topic.streams()]
        queues = [each for topic in parts.catalogue.internal_topics() for each in topic.streams()]
        counts = parts.sessions.counts()
        state, reason = self._state(parts)
        disk, before = shutil.disk_usage(self._config.data_dir), self._life.before
        return DaemonStatus(
            version=version(),
            pid=os.getpid(),
            started_at_ms=self._started_at_ms,
            data_dir=str(self._config.data_dir),
            listening=tuple(str(address) for address in serving.listening),
            state=state,
            state_reason=reason,
            topics=len(topics),
            streams=len(streams),
            groups=len(parts.groups.groups()),
            sessions=counts.connected,
            sessions_waiting=counts.detached,
            log_bytes=await bytes_of(parts.log, [*streams, *queues]),
            disk_free_bytes=disk.free,
            sqlite_version=sqlite3.sqlite_version,
            boot_id=self._boot_id.hex(),
            incarnation=parts.catalogue.incarnation.hex(),
            features=tuple(sorted(FEATURES | {STEERED, DEAD_LETTERS, SHARDS})),
            quarantined=tuple(
                Quarantined(str(path), reason) for path, reason in parts.log.quarantined()
            ),
            unread_records_gone=parts.unread.records,
            unread_losses=tuple(parts.unread.losses()[-limits.UNREAD_LOSSES_SHOWN_MAX :]),
            errors_in_a_day=parts.events.errors_since(self._clock.wall_ms() - ERRORS_SHOWN_MS),
            operators_socket=doors.operators_socket,
            held=doors.held(parts.sessions.held_bytes),
            peers=await greediest(doors.connections, doors.calls, serving.sessions),
            now_us=self._clock.wall_us(),
            disk_size_bytes=disk.total,
            open_files=open_files(),
            open_files_max=open_files_max(),
            sessions_max=SESSIONS_MAX,
            producers=parts.log.measures.producers,
            producers_max=PRODUCERS_MAX - PRODUCERS_RESERVE,
            before=before.how,
            before_ended_at_ms=before.at_ms,
            before_reason=before.reason,
            backup_at_ms=parts.backups.ledger.last_at_ms,
            principals_suspended=parts.access.suspended,
            restores=parts.catalogue.restores,
            **certificate_facts(doors.certificates),
        )

    def _status(self, parts: Parts) -> str:
        """A line for whoever started the daemon."""
        state, reason = self._state(parts)
        topics, groups = len(parts.catalogue.topics()), len(parts.groups.groups())
        why = f" ({reason})" if reason else ""
        sessions = parts.sessions.counts().connected
        return f"{state}{why}: {topics} topics, {groups} groups, {sessions} connected sessions"

    def _state(self, parts: Parts) -> tuple[str, str]:
        """The state and its reason, for people."""
        if self._stop.is_set():
            return "stopping", "it was told to stop"
        if parts.log.is_read_only():
            return "read-only", "the disk is full: publishing is refused"
        return "serving", ""

"""All parts of a run: the daemon's lives one after the other, clients, operators, judges.

Invariant: at most one life at a time. What observers see goes through `tell`, which judges it at
once; the world itself only decides when things happen.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from random import Random

from dss_api.v1 import sessions_pb2
from dss_core.changes import Change
from dss_core.errors import DssError
from dss_core.ids import StreamId
from dss_sim.groups.checker import Checker, Violation
from dss_sim.groups.history import (
    Appended,
    Committed,
    Declared,
    Destroyed,
    Disturbed,
    Event,
    HandedOut,
    Key,
    Led,
)
from dss_sim.ordering_keys import text_of
from dss_sim.sessions.call import Call
from dss_sim.sessions.client import NOTICED_US, Client
from dss_sim.sessions.clocks import LifeClock, Wall
from dss_sim.sessions.connection import Link
from dss_sim.sessions.edits import EditRules
from dss_sim.sessions.life import Life
from dss_sim.sessions.memory_log import Records
from dss_sim.sessions.pause_rules import PauseRules
from dss_sim.sessions.plan import Plan
from dss_sim.sessions.program import ACK_WAIT_S, Program
from dss_sim.sessions.rules import Rules
from dss_sim.sessions.run_rules import Handled, RunRules
from dss_sim.sessions.run_turns import RunTurns
from dss_sim.sessions.slow_store import Disk
from dss_sim.sessions.timeline import Deadlock, Timeline, VirtualLoop
from dssd.leaders.progress_columns import progress_of
from dssd.machines.delivery.ack_wait import ACK_WAIT_GRAIN_MS
from dssd.operations.operations import Caller
from dssd.process import STOP_HARD_S
from dssd.rpc.sessions import SESSION_OPEN_WAIT_S
from dssd.store.port import Delete, Put, Write
from dssd.store.rows import GrantRow, GroupRow, LeaderRow, ProgressRow
from dssd.topics.catalogue import NewTopic

LOOK_AT_TURNS_US = 500_000
RESTART_US = (150_000, 4_000_000)
OPEN_WITHIN_US = int(SESSION_OPEN_WAIT_S * 1e6) + 6_000_000
ENDS_US = 1_000_000
"""How long the daemon works on a connection after it knows that its client is gone."""
OLDER_ENDS_US = 3_000_000
OLDER_ENDS_SLOW_US = 12_000_000
"""The same on a slow disk. What the client asked for is completed before the call ends: at most the
declaration of a group, in four transactions."""
WRITTEN_WITHIN_US = NOTICED_US[1] + 2_000_000
STOP_WITHIN_US = int(STOP_HARD_S * 1e6)


class World:
    """Made from a plan; `run` lets it live."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.timeline = Timeline()
        self.wall = Wall(self.timeline)
        self.disk = Disk(self.chance("disk"))
        self.disk.committed = self._committed
        self.records = Records(plan.seed)
        self.checker = Checker()
        self.rules = Rules(self.timeline, self.wall, self, plan.sessions_max)
        self.pauses = PauseRules()
        self.edits = EditRules()
        self.runs = RunRules(int(ACK_WAIT_S * 1e6) - ACK_WAIT_GRAIN_MS * 1_000)
        self.history: list[Event] = []
        self.transcript: Callable[[int, str, object], None] | None = None
        self.lives: list[Life] = []
        self.began_us = 0
        self.wall_began_ms = 0
        self.stopping_us: int | None = None
        self.crash_at_step = 0
        self.healed = False
        self.names: dict[StreamId, str] = {}
        self.clients = [
            Client(self, f"c{at}", each, self.chance(f"client {at}"))
            for at, each in enumerate(plan.clients)
        ]
        for client in self.clients:
            client.credit_records = plan.credit_records
        self.programs = [
            Program(self, f"p{at}", each, self.chance(f"program {at}"))
            for at, each in enumerate(plan.programs)
        ]
        for program in self.programs:
            program.credit_records = plan.credit_records
            program.refuses_for_long = all(timed.kind != "wall" for timed in plan.timed)
        self.turns = RunTurns()
        self._found: Violation | None = None
        """Violations found by parts that cannot raise them."""
        self._groups: dict[int, str] = {}
        self._restarts = self.chance("restarts")
        self._network = self.chance("network")

    def chance(self, purpose: str) -> Random:
        """A random generator that nothing else uses."""
        return Random(f"{self.plan.seed}/{purpose}")

    # Time

    @property
    def life(self) -> Life | None:
        """The running daemon, if there is one."""
        last = self.lives[-1] if self.lives else None
        return None if last is None or last.loop.abandoned else last

    @property
    def serving(self) -> Life | None:
        """The daemon that answers calls, if there is one."""
        life = self.life
        return life if life is not None and life.serving else None

    def step(self) -> None:
        """Let the next thing happen, and check for complaints.

        Raises:
            Violation: an invariant does not hold.
        """
        try:
            self.timeline.step()
        except Deadlock:
            raise Violation("L2", "nothing will ever happen again") from None
        if self._found is not None:
            raise self._found
        life = self.life
        if life is None:
            return
        if life.failure or life.loop.complaints:
            raise Violation("I19", life.failure or str(life.loop.complaints))
        if self.crash_at_step == self.timeline.steps:
            self.crash()
        elif life.has_ended():
            self._life_over(life)

    def pass_time(self, span_us: int) -> None:
        """Let some time pass."""
        until_us = self.timeline.now_us + span_us
        self.timeline.after(span_us, lambda: None)
        while self.timeline.now_us < until_us:
            self.step()
        self._check_processes()

    def _check_processes(self) -> None:
        for process in (each for program in self.programs for each in program.processes):
            if process.loop.complaints:
                raise Violation("I19", str(process.loop.complaints))

    # The daemon

    def start(self) -> None:
        """Start a daemon, on the store's present contents."""
        if self.life is not None:
            return
        self.began_us = self.timeline.now_us
        self.wall_began_ms = self.wall.ms()
        self.stopping_us = None
        self.rules.new_life()
        chance = self.chance(f"life {len(self.lives)}")
        clock = LifeClock(self.timeline, self.wall, chance.randrange(1 << 40))
        life = Life(
            self.timeline,
            self.disk,
            self.records,
            clock,
            chance,
            timing=self.plan.timing,
            died=self.crash,
        )
        self.lives.append(life)
        self._said("daemon", f"life {len(self.lives)} begins")

    def crash(self) -> None:
        """The daemon dies, and another begins after a while."""
        life = self.life
        if life is None:
            return
        self.disturb("crash")
        self._said("daemon", "crashes")
        life.crash()
        self._restart_later()

    def stop(self) -> None:
        """Tell the daemon to stop; another begins after it ended."""
        life = self.serving
        if life is None or life.stopping:
            return
        self.disturb("stop")
        self._said("daemon", "is told to stop")
        self.stopping_us = self.timeline.now_us
        life.stop()
        self.timeline.after(STOP_WITHIN_US, partial(self._check_stopped, life))

    def _check_stopped(self, life: Life) -> None:
        if not life.loop.abandoned:
            tasks = [task.get_name() for task in life.loop.pending()]
            raise Violation("F22", f"it does not stop: {tasks}")

    def _life_over(self, life: Life) -> None:
        """It ended by itself: nothing of it may be left."""
        left = [task.get_name() for task in life.loop.pending()]
        if left:
            raise Violation("I19", f"tasks outlive the daemon: {left}")
        if life.log.watchers():
            raise Violation("I19", f"{life.log.watchers()} watch the log of a daemon that is gone")
        self._said("daemon", "has ended")
        life.crash()
        self._restart_later()

    def _restart_later(self) -> None:
        self.timeline.after(self._restarts.randint(*RESTART_US), self.start)

    # Clients

    def connected(self, connection: Link) -> Call | None:
        """Begin a call to the daemon; None if none listens."""
        life = self.serving
        if life is None:
            return None
        call = Call(
            connection.name,
            "unix:" if connection.local else "ipv4:127.0.0.1:1",
            self.timeline,
            life.loop,
            self._network,
            take=connection.take,
            ended=connection.ended,
        )
        call.owner = connection
        self._said(connection.name, connection.opening)
        self._taken_over(connection)
        life.begin_call(call)
        self.timeline.after(OPEN_WITHIN_US, partial(self._check_answered, connection, life))
        return call

    def coming(self) -> int:
        """How many calls may still create a session."""
        life = self.life
        return 0 if life is None else len(life.calls)

    def cut(self, connection: Link, noticed_us: int) -> None:
        """A client vanishes without a word; the daemon's transport learns it later."""
        call, life = connection.call, self.life
        if call is None or not connection.is_live or life is None:
            return
        self._said(connection.name, "is cut off")
        self._vanished(connection, noticed_us + ENDS_US)
        connection.leave(politely=False)

        def notice() -> None:
            call.notice()
            life.cancel_call(call)

        self.timeline.after(noticed_us, notice)

    def _taken_over(self, connection: Link) -> None:
        """Any hand-outs of the client's older connections that were not reported are in doubt."""
        for older in connection.client.connections:
            if older.is_live:
                self._vanished(older, OLDER_ENDS_SLOW_US)

    def _vanished(self, connection: Link, within_us: int) -> None:
        sessions = {connection.session_id, connection.client.session_id}
        ids = {
            group_id
            for (session_id, _), group_id in self.rules.group_ids.items()
            if session_id in sessions
        }
        groups = sorted(self._groups[group_id] for group_id in ids)
        self.turns.vanished(groups, self.timeline.now_us + within_us)

    def left(self, connection: Link) -> None:
        """A client left; the daemon may not know yet."""
        life, left_us = self.life, self.timeline.now_us

        def check() -> None:
            if self.life is not life or life is None or life.stopping:
                return
            if self._disk_was_well_since(left_us):
                self.rules.check_left(connection)

        self.timeline.after(WRITTEN_WITHIN_US, check)

    def _disk_was_well_since(self, at_us: int) -> bool:
        disk = self.disk
        return not disk.full and not disk.slow and disk.trouble_us < at_us

    def _check_answered(self, connection: Link, life: Life) -> None:
        if connection.is_live and not connection.answered and self.life is life:
            raise Violation("L7", f"{connection.name} was not answered")

    def opened(self, connection: Link, item: sessions_pb2.Opened) -> None:
        """A client was told that its session is open."""
        self._said(connection.name, item)
        self.rules.opened(connection, item)
        life, opened_us = self.life, self.timeline.now_us

        def check() -> None:
            if self.life is not life or not connection.is_live:
                return
            if self._disk_was_well_since(opened_us - OLDER_ENDS_SLOW_US) or is_late():
                self.rules.check_newest(connection)
            else:
                self.timeline.after(OLDER_ENDS_SLOW_US, check)

        def is_late() -> bool:
            return self.timeline.now_us >= opened_us + OLDER_ENDS_SLOW_US

        self.timeline.after(OLDER_ENDS_US, check)

    def refused(self, connection: Link, item: sessions_pb2.SessionError) -> None:
        """A client was told of an error."""
        self._said(connection.name, item)
        self.rules.refused(connection, item)

    def closed(self, connection: Link) -> None:
        """The daemon ended a connection that its client did not leave."""
        self._said(connection.name, f"is ended {connection.told}")
        call, life = connection.call, self.life
        if call is None or life is None or life.stopping or call.frozen:
            return
        if call.over_us is not None and call.over_us > self.began_us and not connection.told:
            raise Violation("F11", f"{connection.name} was not told why it ended")

    def unsubscribes(self, session_id: bytes, subscription: int) -> None:
        """A client asks to leave a subscription."""
        self.rules.unsubscribes.add((session_id, subscription))

    def group_of(self, session_id: bytes, subscription: int) -> str:
        """The group of a subscription, as the history names it."""
        group_id = self.rules.group_ids.get((session_id, subscription))
        if group_id is None:
            raise Violation("S9", f"a client has a subscription {subscription} that is not stored")
        return self._groups[group_id]

    # Records and operators

    def append(self, stream: StreamId, records: int) -> None:
        """Append a producer's frame; it is durable at once."""
        end, keys = self.records.append(stream, records)
        name, now_us = self.names[stream], self.timeline.now_us
        self.tell(Appended(now_us, name, end, tuple(text_of(key) for key in keys)))
        if self.life is not None:
            self.life.log.grown(stream)

    def create_topics(self) -> None:
        """An operator creates the topics of the plan."""
        life = self.serving
        assert life is not None
        for at, partitions in enumerate(self.plan.partitions):
            life.run(life.catalogue.create(NewTopic(f"t{at}", partitions)), f"create t{at}")
        while len(life.catalogue.topics()) < len(self.plan.partitions):
            self.step()
        for topic in life.catalogue.topics():
            for stream in topic.streams():
                self.names[stream] = str(life.catalogue.name_of(stream))

    def operate(self, change: Change) -> None:
        """An operator applies a change; a failed request changes nothing else."""
        life = self.serving
        if life is not None:
            life.run(_applied(life, change), "operate")

    # Programs

    def staying(self) -> list[Client | Program]:
        """All clients that want to stay connected."""
        everybody: list[Client | Program] = [*self.clients, *self.programs]
        return [each for each in everybody if each.staying]

    def loops(self) -> list[VirtualLoop]:
        """The loops of all processes so far."""
        processes = [each.loop for program in self.programs for each in program.processes]
        return [*(life.loop for life in self.lives), *processes]

    def begin_programs(self) -> None:
        """Begin all programs."""
        for program in self.programs:
            program.begin()
        if self.programs:
            self._look_at_turns()

    def _look_at_turns(self) -> None:
        """Check turns, unless bounds are small, when a record may wait."""
        strict = not self.plan.limits
        is_well = not self.disk.full and not self.disk.slow and self.serving is not None
        processes = [each.process for each in self.programs] if strict and is_well else []
        free = [turn for process in processes if process is not None for turn in process.turns()]
        self.turns.look(free, self.timeline.now_us)
        self.timeline.after(LOOK_AT_TURNS_US, self._look_at_turns)

    def run_began(self, handled: Handled, key: Key, *, redelivered: bool) -> None:
        """A handler is called. Raised here, a violation would count as the handler's failure."""
        line, now_us = handled.line, self.timeline.now_us
        place = (line.group, line.stream, handled.offset, line.member, line.grant_epoch)
        try:
            self.tell(HandedOut(now_us, *place, handled.attempt, redelivered, key))
            self.runs.begun(handled, now_us)
        except Violation as found:
            self._found = self._found or found

    def fail(self, why: str) -> None:
        """A process raised what it must not."""
        self._found = self._found or Violation("I19", why)

    # What everybody sees

    def disturb(self, what: str) -> None:
        """Something happens that may make records come twice."""
        self.tell(Disturbed(self.timeline.now_us, what))

    def tell(self, event: Event) -> None:
        """Judge something that users, leaders or producers answer for."""
        self.history.append(event)
        self._said("", event)
        self.checker.take(event)
        self.turns.take(event)
        if isinstance(event, HandedOut):
            self.pauses.handed_out(event, int(event.group.rpartition("#")[2]))

    def _said(self, who: str, what: object) -> None:
        if self.transcript is not None:
            self.transcript(self.timeline.now_us, who, what)

    def _committed(self, writes: Sequence[Write], asker: object) -> None:
        call = asker if isinstance(asker, Call) else None
        connection = None if call is None else call.owner
        assert connection is None or isinstance(connection, Link)
        for write in writes:
            self._said(connection.name if connection else "commit", write)
        self.rules.committed(writes, connection)
        self.pauses.committed(writes)
        self.edits.committed(writes)
        self._tell_of(writes)

    def _tell_of(self, writes: Sequence[Write]) -> None:
        now_us = self.timeline.now_us
        rows = [write.row for write in writes if isinstance(write, Put)]
        born = [
            row for row in rows if isinstance(row, GroupRow) and row.group_id not in self._groups
        ]
        for group in born:
            self._declare(group, rows)
        self.runs.paused |= {
            self._groups[row.group_id] for row in rows if isinstance(row, GroupRow) and row.paused
        }
        for row in rows:
            if isinstance(row, LeaderRow) and row.group_id in self._groups:
                self.tell(Led(now_us, self._groups[row.group_id], row.leader_epoch))
        epochs = {
            (row.group_id, row.storage_topic_id, row.partition): row.grant_epoch
            for row in rows
            if isinstance(row, GrantRow)
        }
        for row in rows:
            if isinstance(row, ProgressRow) and not born:
                key = (row.group_id, row.storage_topic_id, row.partition)
                self._tell_progress(row, epochs.get(key, -1))
        for write in writes:
            if isinstance(write, Delete) and write.kind is GroupRow:
                group_name = self._groups.get(int(write.key[0]))
                if group_name is not None:
                    self.tell(Destroyed(now_us, group_name))

    def _declare(self, group: GroupRow, rows: Sequence[object]) -> None:
        name = self._groups[group.group_id] = f"{group.name}#{group.group_id}"
        starts = tuple(
            (self.names[StreamId(row.storage_topic_id, row.partition)], row.floor)
            for row in rows
            if isinstance(row, ProgressRow)
        )
        by_key = bool(self.programs)
        self.tell(Declared(self.timeline.now_us, name, starts, 0, by_key))

    def _tell_progress(self, row: ProgressRow, grant_epoch: int) -> None:
        stream = self.names[StreamId(row.storage_topic_id, row.partition)]
        progress = progress_of(row)
        name, now_us = self._groups[row.group_id], self.timeline.now_us
        self.tell(Committed(now_us, name, stream, progress.floor, progress.ranges, grant_epoch))


async def _applied(life: Life, change: Change) -> None:
    with suppress(DssError):
        await life.operations.apply(change, caller=Caller("operator", "the world"))

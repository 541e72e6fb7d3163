"""One run: hosts, store, log, network, clients, producers, and the daemon.

Invariant: everything that happens is an event of the schedule; every event is followed by a look
at the machines that it touched, and every 50th by a look at all of them.
"""

from collections.abc import Callable, Sequence
from functools import partial

from dss_core.ids import StreamId
from dss_core.lane import DEAD, RETRY
from dss_core.routing import Router
from dss_sim.groups.borrower_rules import Incarnations
from dss_sim.groups.catalogue import SimulatedCatalogue, declaration, new_group, new_topic
from dss_sim.groups.checker import Checker, Violation
from dss_sim.groups.client import Client
from dss_sim.groups.cursor_operator import CursorOperator
from dss_sim.groups.history import (
    Born,
    Committed,
    Declared,
    Disturbed,
    Errand,
    Event,
    HandedOut,
    Moved,
    QueuesBorn,
    Redriven,
)
from dss_sim.groups.hold_operator import HoldOperator
from dss_sim.groups.leader_host import LeaderHost, Leading
from dss_sim.groups.leader_steps import Sight, seen_before
from dss_sim.groups.ledger import Ledger
from dss_sim.groups.log import SimulatedLog
from dss_sim.groups.log_writer import Writer
from dss_sim.groups.machine_rules import (
    ANSWERED_WITHIN_MS,
    LATE_MS,
    check_answered,
    check_deadlines,
    check_leader,
    check_repeated,
    check_window,
)
from dss_sim.groups.member_operator import MemberOperator
from dss_sim.groups.network import LATENCY_US, Network
from dss_sim.groups.pause_operator import PauseOperator
from dss_sim.groups.pipe import Pipe
from dss_sim.groups.plan import GroupPlan, Plan
from dss_sim.groups.producers import Producer
from dss_sim.groups.queue_log import Queue
from dss_sim.groups.queue_plans import RECORDS_A_RUN, has_queues
from dss_sim.groups.queue_work import QueueWork
from dss_sim.groups.randomness import Randomness
from dss_sim.groups.record_keys import RecordKeys
from dss_sim.groups.schedule import PARTS, Act, Crashed, Host, Schedule
from dss_sim.groups.session_host import SimulatedSession
from dss_sim.groups.shard_operator import ShardOperator
from dss_sim.groups.store import SimulatedStore, at_once, progress_in
from dssd.leaders.progress_columns import progress_of, unpacked_ranges
from dssd.machines.leader.events import LeaderInput
from dssd.machines.messages import BorrowerId, ToBorrower, ToLeader
from dssd.machines.queues import BLOCK
from dssd.machines.start_point import OFFSET_MAX
from dssd.store.port import Put, Write
from dssd.store.rows import GroupRow, MadeMoveRow, PendingMoveRow
from dssd.topics.model import StorageTopic, Topic

LOOK_AT_ALL_EVERY = 50
EVENTS_MAX = 200_000
"""A hundred times the events of a usual run."""
FRAME_RECORDS_MAX = 6
STOP_US = 500_000
"""How long a daemon may take to stop; then it is killed."""
RESTART_US = 300_000
PRODUCERS_NOTICE_US = 5_000


class World:
    """Built from a plan; `run` makes it turn."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.schedule = Schedule()
        self.chance = Randomness(plan.seed, plan.rates, plan.kept)
        self.network = Network(self.schedule, self.chance)
        self.store = SimulatedStore(self.schedule, self.chance)
        self.store.committed = self._committed
        self.log = SimulatedLog()
        self.catalogue = SimulatedCatalogue()
        skew = max(abs(rate / PARTS - 1) for rate, _ in plan.clocks)
        self.checker = Checker(clock_skew=skew)
        self.history: list[Event] = []
        self.transcript: Callable[[int, str, object], None] | None = None
        self.names: dict[StreamId, str] = {}
        self.retry_names: dict[tuple[str, str], str] = {}
        """The queues, by group and stream of the retry queue."""
        self.in_lanes: set[tuple[str, str]] = set()
        """Group and stream of all levels of lanes."""
        self.queue_work = QueueWork(self)
        self.keys = RecordKeys(plan.seed)
        self.groups: dict[str, GroupRow] = {}
        self.every: dict[str, int] = {}
        self.sessions: dict[str, SimulatedSession] = {}
        """Connected sessions, by client id."""
        self.effects = 0
        """Effects carried out so far, by any host."""
        self.crash_at_effect = plan.crash.effect if plan.crash is not None else 0
        self.healed_us: int | None = None
        """The time since which there are no faults."""
        self.ledger = Ledger()
        self.cursor_operator = CursorOperator(self)
        self.member_operator = MemberOperator(self)
        self.pause_operator = PauseOperator(self)
        self.shard_operator = ShardOperator(self)
        self.hold_operator = HoldOperator(self)
        self.incarnations = Incarnations(len(plan.groups))
        self._delays = self.chance.of("delays")
        self._pipes = self.chance.of("pipes")
        self._borrowers: dict[BorrowerId, tuple[Host, Callable[[ToBorrower], None]]] = {}
        self._group_names: dict[int, str] = {}
        self._numbers = 0
        self._topics = 0
        clocks = iter(plan.clocks)
        self.leaders = LeaderHost(self, self._host("leaders", *next(clocks)))
        self.session_hosts = [
            self._host(f"sessions{at}", *next(clocks)) for at in range(plan.session_hosts)
        ]
        self.clients = [
            Client(self, self._host(f"client{at}", *next(clocks)), f"c{at}", habits)
            for at, habits in enumerate(plan.habits)
        ]
        self.writer = Writer(self)
        self.producer_names: dict[bytes, str] = {}
        self.producers = [Producer(self, number) for number in range(plan.producers)]
        for at, partitions in enumerate(plan.partitions):
            self.create_topic(partitions, *plan.kind_of(at))
        for group in plan.groups:
            self.create_group(group)

    def _host(self, name: str, rate: int, offset_ms: int) -> Host:
        return Host(self.schedule, name, rate=rate, offset_ms=offset_ms)

    # Time

    def step(self) -> None:
        """Let one event happen, and look at the machines that it touched.

        Raises:
            Violation: something does not hold.
        """
        try:
            self.schedule.step()
        except Crashed as crashed:
            self.crash(crashed.args[0])
        if self.schedule.happened % LOOK_AT_ALL_EVERY == 0:
            self.look()
        if self.schedule.happened > EVENTS_MAX:
            raise Violation("L5", "events without end")

    def after(self, span_us: tuple[int, int], act: Act, host: Host | None = None) -> None:
        """Let an event happen after a while, drawn from a span."""
        low, high = span_us
        self.schedule.after(low + int(self._delays.random() * (high - low)), act, host)

    # What is looked at

    def tell(self, event: Event) -> None:
        """Record something that observers see, and judge it."""
        self.history.append(event)
        if self.transcript is not None:
            self.transcript(self.schedule.now_us, "history", event)
        self.checker.take(event)
        if isinstance(event, HandedOut):
            self.pause_operator.handed_out(event)

    def say(self, who: str, given: object) -> None:
        """Write to the transcript only."""
        if self.transcript is not None:
            self.transcript(self.schedule.now_us, who, given)

    def noticed(self, what: object) -> None:
        """Something worth showing to people, in the transcript only."""
        self.say("notice", what)

    def await_leader(self, acting: Leading, given: LeaderInput) -> Sight | None:
        """A leader is about to take a step; returns the values to compare after it."""
        assert acting.leader is not None
        host = self.leaders.host
        thawed_us = self.schedule.now_us - host.frozen_until_us
        # Inputs that waited until it led carry their arrival time; its timers are due after them.
        if thawed_us > LATE_MS * 1_000 and given.now_ms == host.now_ms():
            check_deadlines(acting.leader, host.now_ms())
            check_repeated(acting.leader, host.now_ms(), acting.said_ms)
        if self.healed_us is not None:
            healed_ms = host.now_ms() - host.elapsed_ms(self.schedule.now_us - self.healed_us)
            revoke_ms = ANSWERED_WITHIN_MS
            hangs = any(each.hang for each in self.plan.habits)
            # Refused records are moved before their lane is given back.
            if "late_final" in self.plan.rates or hangs or has_queues(self.plan):
                revoke_ms += self.plan.timing.revoke_deadline_ms
            check_answered(acting.leader, host.now_ms(), healed_ms, self.is_borrower, revoke_ms)
        return seen_before(acting.leader, given, kept=acting.kept_until_ms > 0)

    def check_fenced(self, group_id: int, stream: StreamId, epoch: int, rule: str) -> None:
        """S4, H1: earlier holders of a stream hand out nothing any more when it is granted anew, or
        held back.

        Raises:
            Violation: a session may still deliver it.
        """
        for client_id, session in self.sessions.items():
            stands_still = self.schedule.now_us < session.host.frozen_until_us
            if session.rules.consumed(stream) >= self.sealed_end(stream):
                # Finished, and reopened by an operator before its holder heard that it is over.
                continue
            for old in session.rules.delivered(group_id, stream):
                if old < epoch and not stands_still:
                    raise Violation(rule, f"{client_id} still delivers {stream} of {old}: {epoch}")

    def sealed_end(self, stream: StreamId) -> int:
        """The end of a sealed stream; above all offsets if it is not sealed."""
        parts = (part for topic in self.catalogue.topics.values() for part in topic.storage_topics)
        for part in parts:
            if part.storage_topic_id == stream.storage_topic_id and part.ends is not None:
                return part.ends[stream.partition]
        return OFFSET_MAX

    def touch_leader(self, acting: Leading) -> None:
        """A leader took a step."""
        if acting.leader is not None:
            check_leader(acting.leader)

    def touch_window(self, session: SimulatedSession) -> None:
        """A delivery window took a step."""
        check_window(session.window, FRAME_RECORDS_MAX)

    def look(self) -> None:
        """Look at every machine."""
        for acting in self.leaders.leading.values():
            self.touch_leader(acting)
        for session in self.sessions.values():
            self.touch_window(session)
            if self.schedule.now_us - session.host.frozen_until_us > LATE_MS * 1_000:
                session.rules.check_in_time()
                session.rules.check_turns()
            else:
                session.rules.turns.stood_still()
            session.rules.check_borrowers(self.leaders)
            session.rules.check_read_on(self.log, session.growing)

    def count_effect(self, host: Host) -> None:
        """A host carried out an effect, and may die at it.

        Raises:
            Crashed: it dies.
        """
        self.effects += 1
        if self.effects == self.crash_at_effect:
            self.tell(Disturbed(self.schedule.now_us, f"{host.name} dies in a step"))
            raise Crashed(host)

    # Hosts

    def crash(self, host: Host) -> None:
        """The process on this host dies."""
        if self.plan.crash is not None and self.plan.crash.whole_daemon:
            self.crash_daemon()
        elif host is self.leaders.host:
            self._crash_leaders(with_sessions=False)
        elif host in self.session_hosts:
            self.crash_sessions(host)

    def _crash_leaders(self, *, with_sessions: bool) -> None:
        self.leaders.crash(with_sessions=with_sessions)
        self.schedule.after(RESTART_US, partial(self._restart, with_log=with_sessions))

    def _restart(self, *, with_log: bool) -> None:
        if with_log:
            self.writer.restart()
            for storage_topic_id, sealed in list(self.catalogue.to_seal.items()):
                self.writer.seal(storage_topic_id, sealed)
        # If the whole daemon died since, leaders come back with its log.
        if self.writer.up:
            self.leaders.restart()
            self.cursor_operator.resume()
            self.member_operator.resume()
            self.pause_operator.resume()
            self.shard_operator.resume()

    def crash_sessions(self, host: Host) -> None:
        """Every session of the host is gone; clients notice, leaders are told nothing."""
        host.crash()
        for client_id, session in list(self.sessions.items()):
            if session.host is host:
                session.abandon()
                del self.sessions[client_id]
                for client in self.clients:
                    if client.name == client_id and client.pipe is not None:
                        client.pipe.cut(client_notices_us=5_000)
        for borrower_id, (home, _) in list(self._borrowers.items()):
            if home is host:
                del self._borrowers[borrower_id]

    def crash_daemon(self, *, power: bool = False) -> None:
        """Leaders, sessions and log are one process, which dies, with commits under way.

        With ``power`` the machine dies, and loses everything that was not synced.
        """
        self.store.crash()
        self.writer.crash(power=power)
        self.queue_work.crash()
        for producer in self.producers:
            producer.cut(PRODUCERS_NOTICE_US)
        self._crash_leaders(with_sessions=True)
        for host in self.session_hosts:
            self.crash_sessions(host)

    def stop_daemon(self) -> None:
        """Sessions say goodbye, leaders save their state; then the process ends and restarts."""
        if not self.leaders.up:
            return
        # Scheduled first, because a host may die while it says goodbye.
        self.schedule.after(STOP_US, self._stopped)
        self.leaders.stop()
        for session in list(self.sessions.values()):
            session.end()

    def _stopped(self) -> None:
        self.writer.close()
        self.crash_daemon()

    def connect(self, client: Client) -> Pipe | None:
        """A connection to the client's session host; an older session of it is taken over."""
        host = self.session_hosts[self.clients.index(client) % len(self.session_hosts)]
        if host.frozen_until_us > self.schedule.now_us or not self.leaders.takes_sessions:
            return None
        before = self.sessions.get(client.name)
        if before is not None and not before.closed:
            # The host may die of it, and then this session with it. Its client is back.
            before.close(None)
        self.sessions.pop(client.name, None)
        pipe = Pipe(self.schedule, self._pipes, client.host, host, client)
        session = SimulatedSession(self, host, pipe, client.name, client.session_id)
        pipe.below = session
        self.sessions[client.name] = session
        return pipe

    def session_closed(self, session: SimulatedSession, silent_ms: int | None) -> None:
        """A session's client is gone: its leaders in the same process are called.

        That comes after its borrowers' last messages, as in the daemon, unless those are late.
        """
        if self.sessions.get(session.client_id) is session:
            del self.sessions[session.client_id]
        groups = session.handler.group_ids()
        close = partial(self.leaders.close_session, session.session_id, groups, silent_ms)
        self.schedule.arrive(LATENCY_US[1], close, self.leaders.host)

    # The post

    def to_leader(self, host: Host, group_id: int, message: ToLeader) -> None:
        """Send to the leader of a group."""
        self.say("to leader", message)
        receive = partial(self.leaders.receive, group_id, message)
        self.network.send(host, self.leaders.host, receive)

    def to_borrower(self, host: Host, message: ToBorrower) -> None:
        """Send to the borrower that the message names."""
        home = self._borrowers.get(message.borrower_id)
        if home is not None:
            self.network.send(host, home[0], partial(self._hand_over, message))

    def _hand_over(self, message: ToBorrower) -> None:
        home = self._borrowers.get(message.borrower_id)
        if home is not None:
            home[1](message)

    def attach_borrower(
        self, borrower_id: BorrowerId, host: Host, receive: Callable[[ToBorrower], None]
    ) -> Callable[[], None]:
        """Deliver what is sent to this borrower to ``receive``; returns how to stop."""
        self._borrowers[borrower_id] = host, receive

        def stop() -> None:
            self._borrowers.pop(borrower_id, None)

        return stop

    def is_borrower(self, borrower_id: BorrowerId) -> bool:
        """Whether the borrower lives."""
        return borrower_id in self._borrowers

    def next_grant(self) -> int:
        """A number that was never used."""
        self._numbers += 1
        return self._numbers

    # Topics, groups and records

    def create_topic(
        self, partitions: int, durability: str = "sync", router: Router = Router.BLOCK
    ) -> Topic:
        """A topic of one storage topic, empty."""
        self._topics += 1
        topic = new_topic(self._topics, f"t{self._topics}", partitions, durability, router)
        self._enter(topic, topic.storage_topics[0])
        return topic

    def _enter(self, topic: Topic, part: StorageTopic) -> None:
        self.catalogue.topics[topic.name] = topic
        self.log.create(part.streams())
        self.keys.create(part, topic.router)
        self.writer.open(part.storage_topic_id, part.partitions, topic.durability)
        for stream in part.streams():
            self.names[stream] = f"{topic.name}/{part.ordinal}/{stream.partition}"

    def selecting(self, topic: Topic) -> list[GroupRow]:
        """The groups that read the topic."""
        return [group for group in self.groups.values() if group.filter == f"{topic.name}/#"]

    def create_group(self, planned: GroupPlan) -> GroupRow:
        """Declare a group, with its starts resolved."""
        topic = list(self.catalogue.topics.values())[planned.topic]
        row = new_group(planned, topic, len(self._group_names) + 1)
        if planned.queues is not None:
            self._make_queues(row, topic.streams())
        starts = {
            stream: 0 if planned.earliest else self.log.bounds(stream).end
            for stream in topic.streams()
        }
        writes = declaration(row, starts)
        at_once(self.store.rows.commit(writes))
        self.ledger.take(writes)
        self.groups[row.name] = row
        self._group_names[row.group_id] = row.name
        self.every[row.name] = planned.every
        named = tuple((self.names[stream], start) for stream, start in starts.items())
        how = (planned.every, row.ordered, planned.on_damage)
        self.tell(Declared(self.schedule.now_us, row.name, named, *how))
        self._tell_queues(row, topic.streams())
        return row

    def _make_queues(self, group: GroupRow, streams: Sequence[StreamId]) -> None:
        for main in streams:
            queues = self.catalogue.make_queues(group.group_id, main)
            self.log.create(queues)
            for level, queue in enumerate(queues, RETRY):
                self.queue_work.log.create(queue, Queue(group.name, level, (main, *queues)))
                kind = "retry" if level == RETRY else "dead"
                self.names[queue] = f"{self.names[main]}~{group.name}.{kind}"

    def _tell_queues(self, group: GroupRow, streams: Sequence[StreamId]) -> None:
        for main in streams:
            queues = self.catalogue.queues_of(group.group_id, main)
            if queues is not None:
                main_name, retry, dead = (self.names[each] for each in (main, *queues))
                self.retry_names[group.name, main_name] = retry
                self.in_lanes |= {(group.name, each) for each in (main_name, retry, dead)}
                policy = group.max_deliver, group.queue_records < RECORDS_A_RUN
                now_us, names = self.schedule.now_us, (main_name, retry, dead)
                order = group.ordered, group.on_dead_letter == BLOCK
                self.tell(QueuesBorn(now_us, group.name, *names, *policy, *order))

    def remove_queues(self, group_id: int, streams: Sequence[StreamId]) -> None:
        """Streams of a group are gone, and their queues with them."""
        for main in streams:
            for queue in self.catalogue.queues.pop((group_id, main), ()):
                self.log.remove([queue])
                self.queue_work.log.remove(queue)

    def append(self, stream: StreamId, records: int, producer: int = 0) -> None:
        """A producer sends a frame."""
        self.producers[producer % len(self.producers)].publish(stream, records)

    def change_topic(self, topic: Topic, part: StorageTopic | None = None) -> None:
        """A topic changed, perhaps by a new part; leaders hear of it."""
        if part is not None:
            self._enter(topic, part)
            for group in self.selecting(topic):
                for stream in part.streams():
                    self.tell(Born(self.schedule.now_us, group.name, self.names[stream]))
                if group.max_deliver:
                    self._make_queues(group, part.streams())
                    self._tell_queues(group, part.streams())
        self.catalogue.topics[topic.name] = topic
        self.leaders.change_topic(topic)

    def _committed(self, writes: Sequence[Write]) -> None:
        """A commit took effect: report its changes of streams."""
        epochs = {(row.group_id, row.storage_topic_id, row.partition): epoch
                  for row, epoch in progress_in(writes)}  # fmt: skip
        for made, asked in self.ledger.take(writes):
            self._tell_redriven(asked)
            moved_epoch = epochs[asked.group_id, asked.storage_topic_id, asked.partition]
            self.tell(self._moved(made, asked, moved_epoch))
        for write in writes:
            if isinstance(write, Put) and isinstance(write.row, PendingMoveRow):
                self.cursor_operator.applied(write.row.number)
        for row, grant_epoch in progress_in(writes):
            group = self._group_names[row.group_id]
            stream = self.names[StreamId(row.storage_topic_id, row.partition)]
            progress = progress_of(row)
            floor, ranges = progress.floor, progress.ranges
            stopped = bool(row.redrive and not row.redriving)
            told = (group, stream, floor, ranges, grant_epoch, row.applied_end, stopped)
            self.tell(Committed(self.schedule.now_us, *told))

    def _tell_redriven(self, asked: PendingMoveRow) -> None:
        main = StreamId(asked.storage_topic_id, asked.partition)
        queues = self.catalogue.queues_of(asked.group_id, main)
        if queues is not None:
            group, dead = self._group_names[asked.group_id], self.names[queues[DEAD - 1]]
            chosen = unpacked_ranges(asked.redriven), unpacked_ranges(asked.discarded)
            whole = asked.redrive_whole_keys
            self.tell(Redriven(self.schedule.now_us, group, dead, *chosen, whole))
            if asked.errand_kind:
                retry, ranges = self.names[queues[RETRY - 1]], unpacked_ranges(asked.errand_ranges)
                now_us = self.schedule.now_us
                what, number = asked.errand_kind, asked.number
                self.tell(Errand(now_us, group, retry, what, ranges, number))

    def _moved(self, made: MadeMoveRow, asked: PendingMoveRow, grant_epoch: int) -> Moved:
        stream = self.names[StreamId(made.storage_topic_id, made.partition)]
        return Moved(
            self.schedule.now_us,
            self._group_names[asked.group_id],
            stream,
            made.number,
            self.cursor_operator.undoes(made.number),
            unpacked_ranges(asked.dropped),
            unpacked_ranges(asked.added),
            made.floor_before,
            unpacked_ranges(made.ranges_before),
            made.floor_after,
            unpacked_ranges(made.ranges_after),
            grant_epoch,
        )

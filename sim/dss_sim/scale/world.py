"""The large world: its size, and how it differs from a normal one.

At full size it has 1,000 clients with 10 subscriptions each, in 1,000 groups over topics of 4,096
streams. A large topic is read by one group, a small one by ten; the members of a group are drawn,
so groups overlap. It counts events and messages instead of keeping its history.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from random import Random

from dss_core.ids import StreamId
from dss_sim.groups.client import Client, Habits
from dss_sim.groups.history import Committed, Event, Stored
from dss_sim.groups.leader_host import Leading
from dss_sim.groups.leader_steps import Sight
from dss_sim.groups.plan import SECOND_US, GroupPlan, Plan
from dss_sim.groups.schedule import Crashed, Host
from dss_sim.groups.session_host import SimulatedSession
from dss_sim.groups.world import World
from dssd.machines.leader.events import LeaderInput
from dssd.machines.leader.lent_stream import StreamState
from dssd.machines.leader.state import Leader
from dssd.machines.messages import ToBorrower, ToLeader

LARGE_TOPICS = ((1, 1_024), (4, 256), (8, 64))
SMALL_TOPICS = (96, 16)
TOPICS = (*LARGE_TOPICS, SMALL_TOPICS)
"""How many topics have how many streams."""

GROUPS = CLIENTS = 1_000
SUBSCRIPTIONS = 10
"""Per client; each is a borrower."""

SESSION_HOSTS = 20
CLOCK_PARTS = 100
"""How much faster or slower than true time a clock runs at most, in parts per million."""

RATES = {"lose": 0.01, "double": 0.01, "late": 0.01, "slow_commit": 0.02}
"""Faults of single messages and commits, until heal."""

LOOK_AT_ONE_IN = 500
"""One of this many steps of the machines is checked."""


def plan_of(factor: float, seed: int, minutes: float) -> Plan:
    """A world of this share of the full size, except for its time."""
    chance = Random(f"{seed}/scale")
    partitions = tuple(
        scaled(streams, factor, least=1) for topics, streams in TOPICS for _ in range(topics)
    )
    groups = tuple(
        GroupPlan(f"g{at}", _topic_of(at), 0, True, 30_000, False)
        for at in range(scaled(GROUPS, factor))
    )
    clients, hosts = scaled(CLIENTS, factor), scaled(SESSION_HOSTS, factor)
    clocks = tuple(
        (1_000_000 + chance.randint(-CLOCK_PARTS, CLOCK_PARTS), chance.randint(0, 1_000_000))
        for _ in range(1 + hosts + clients)
    )
    return Plan(
        seed, partitions, groups, (Habits(later=0.2),) * clients, hosts, clocks,
        1_000, 8 << 20, RATES, (), round(minutes * 60 * SECOND_US),
    )  # fmt: skip


def _topic_of(group: int) -> int:
    large = sum(topics for topics, _ in LARGE_TOPICS)
    return group if group < large else large + (group - large) % SMALL_TOPICS[0]


def scaled(full: int, factor: float, least: int = 2) -> int:
    """This share of the full number."""
    return max(round(full * factor), least)


class LargeWorld(World):
    """A world that counts, and looks into machines only now and then."""

    def __init__(self, plan: Plan) -> None:
        self.sent: Counter[str] = Counter()
        """Messages of the group protocol by kind."""
        self.backlog = 0
        """Records that groups have yet to acknowledge durably, over all groups."""
        self.backlog_max = 0
        self.closes = 0
        """Steps of leaders in which they learned of a closed session."""
        self.members: dict[str, list[Client]] = {group.name: [] for group in plan.groups}
        """The clients that may be members of each group."""
        self._readers = Counter(group.topic for group in plan.groups)
        self._floors: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._looks = 0
        super().__init__(plan)
        self._subscribe_all()

    def _subscribe_all(self) -> None:
        """Each client subscribes to some groups, and each group has as many clients."""
        chance = self.chance.of("subscriptions")
        groups = list(self.groups.values())
        for _ in range(min(SUBSCRIPTIONS, len(groups))):
            chance.shuffle(groups)
            for at, client in enumerate(self.clients):
                turned = groups[at % len(groups) :] + groups[: at % len(groups)]
                wanted = next(each for each in turned if each.group_id not in client.wanted)
                client.wanted[wanted.group_id] = wanted.name
                self.members[wanted.name].append(client)

    def step(self) -> None:
        """Let one event happen."""
        try:
            self.schedule.step()
        except Crashed as crashed:
            self.crash(crashed.args[0])

    def tell(self, event: Event) -> None:
        """Judge an event, count it, and drop it."""
        self.checker.take(event)
        if isinstance(event, Stored):
            topic = int(event.stream.split("/")[0][1:]) - 1
            self.backlog += event.records * self._readers[topic]
            self.backlog_max = max(self.backlog_max, self.backlog)
        elif isinstance(event, Committed):
            self.backlog -= event.floor - self._floors[event.group, event.stream]
            self._floors[event.group, event.stream] = event.floor

    def to_leader(self, host: Host, group_id: int, message: ToLeader) -> None:
        """Send and count."""
        self.sent[type(message).__name__] += 1
        super().to_leader(host, group_id, message)

    def to_borrower(self, host: Host, message: ToBorrower) -> None:
        """Send and count."""
        self.sent[type(message).__name__] += 1
        super().to_borrower(host, message)

    def session_closed(self, session: SimulatedSession, silent_ms: int | None) -> None:
        """Tell its leaders."""
        self.closes += len(session.handler.group_ids())
        super().session_closed(session, silent_ms)

    def touch_leader(self, acting: Leading) -> None:
        """Check one of several."""
        if self._is_looked_at():
            super().touch_leader(acting)

    def touch_window(self, session: SimulatedSession) -> None:
        """Check one of several."""
        if self._is_looked_at():
            super().touch_window(session)

    def await_leader(self, acting: Leading, given: LeaderInput) -> Sight | None:
        """Check one of several."""
        return super().await_leader(acting, given) if self._is_looked_at() else None

    def check_fenced(self, group_id: int, stream: StreamId, epoch: int, rule: str) -> None:
        """Check one of several."""
        if self._is_looked_at():
            super().check_fenced(group_id, stream, epoch, rule)

    def _is_looked_at(self) -> bool:
        self._looks += 1
        return self._looks % LOOK_AT_ONE_IN == 0

    # What outsiders cannot see

    def leader_of(self, name: str) -> Leader | None:
        """The machine that leads a group."""
        acting = self.leaders.leading.get(self.groups[name].group_id)
        return acting.leader if acting is not None else None

    def staying(self, name: str) -> list[Client]:
        """The clients that want to be members of a group now."""
        return [client for client in self.members[name] if client.staying]

    def unsettled(self, among: Iterable[str] | None = None) -> list[str]:
        """The groups, of these or of all, that are not allocated as they should be."""
        names = self.groups if among is None else among
        return [name for name in names if not self._is_settled(name)]

    def _is_settled(self, name: str) -> bool:
        """L1, L3: whoever wants to be a member is one, all streams are granted, and shares are
        equal."""
        wanting = sorted(client.name for client in self.staying(name))
        leader = self.leader_of(name)
        if not wanting:
            return True
        if leader is None or wanting != sorted(m.client_id for m in leader.members.values()):
            return False
        shares = [len(member.streams) for member in leader.members.values()]
        return max(shares) - min(shares) <= 1 and all(
            lent.state is StreamState.GRANTED for lent in leader.streams.values()
        )

"""A program under one client id that consumes with the library: its processes, one after the other.

After a process was killed, retired or lost its session, another one begins a while later, as a
supervisor would do it. A twin begins while the earlier process lives, and takes over.

Invariant: `sure` has the subscriptions that the daemon confirmed in this session and that nobody
has asked to end since.
"""

from random import Random
from typing import Protocol
from zlib import crc32

from dss_api.v1 import sessions_pb2
from dss_client._subscription_options import SubscriptionOptions
from dss_core.limits import CREDIT_RECORDS
from dss_sim.groups.history import Key
from dss_sim.sessions.client import BACK_US
from dss_sim.sessions.connection import Surroundings
from dss_sim.sessions.library_call import LibraryLink
from dss_sim.sessions.process import Process
from dss_sim.sessions.program_plan import RUN_FILTER, HandlerHabits, ProgramPlan
from dss_sim.sessions.run_rules import Handled, RunRules

DEADLY_OF = 29
"""One record of this many kills the process that handles it."""
DEATHS_MAX = 6
"""After this many deaths in handlers somebody has removed the deadly records."""
ACK_WAIT_S = 2.0
"""The name of the group that only programs use."""


class Town(Surroundings, Protocol):
    """The part of the world that a program uses."""

    healed: bool
    runs: RunRules

    def disturb(self, what: str) -> None:
        """Something happens that may make records come twice."""

    def run_began(self, handled: Handled, key: Key, *, redelivered: bool) -> None:
        """A handler is called."""

    def fail(self, why: str) -> None:
        """Something raised that must not."""


class Program:
    """One client id, and what its owner wants."""

    def __init__(self, world: Town, name: str, plan: ProgramPlan, chance: Random) -> None:
        self.world = world
        self.name = name
        self.plan = plan
        self.habits = plan.habits
        self.chance = chance
        self.filters = set(plan.filters)
        """What it subscribes to."""
        self.sure: set[int] = set()
        self.asked: set[int] = set()
        self.session_id = b""
        self.credit_records = CREDIT_RECORDS
        self.refuses_for_long = True
        """A delay that is stored may take a day if the wall clock is set back."""
        self.staying = False
        self.connections: list[LibraryLink] = []
        self.newest: LibraryLink | None = None
        """The newest connection that was opened; the daemon may receive no ack of an earlier
        one."""
        self._newest_epoch = 0
        self.processes: list[Process] = []
        self._deaths = 0

    @property
    def process(self) -> Process | None:
        """The newest process, if it lives."""
        newest = self.processes[-1] if self.processes else None
        return None if newest is None or newest.is_over else newest

    @property
    def is_settled(self) -> bool:
        """Whether it is connected, and has exactly what it wants."""
        process = self.process
        return process is not None and process.has_all(self.filters)

    def described(self) -> str:
        """For people."""
        process = self.process
        link = None if process is None else process.link
        groups = None if link is None else link.groups
        last = self.processes[-1].ended_by if self.processes else ""
        return f"{self.name} wants {self.filters}, has {groups}, ended by {last or 'nothing'}"

    def options_of(self, filter_: str) -> SubscriptionOptions:
        """The options of its subscription."""
        own = filter_ == RUN_FILTER
        return SubscriptionOptions(
            filter_,
            shared=filter_.startswith("$"),
            start="earliest" if own or not filter_.startswith("$") else None,
            ack_wait=ACK_WAIT_S if own else None,
        )

    def begin(self) -> None:
        """Begin a process, whether or not another one lives; unless nothing is left to consume."""
        self.staying = bool(self.filters)
        if not self.staying:
            return
        self.processes.append(Process(self))

    def behave(self) -> None:
        """From now on handle everything at once, and stay."""
        self.habits = HandlerHabits(sync=self.habits.sync)
        for process in self.processes:
            process.go_on()
        if self.process is None:
            self.begin()

    def dies_of(self, handled: Handled) -> bool:
        """Whether a record kills the process that handles it."""
        if self.world.healed or not self.habits.dies or self._deaths == DEATHS_MAX:
            return False
        place = f"{handled.line.stream} {handled.offset}"
        if crc32(place.encode()) % DEADLY_OF:
            return False
        self._deaths += 1
        self.world.disturb("kill_client")
        return True

    # What its processes tell

    def opened(self, link: LibraryLink, item: sessions_pb2.Opened) -> None:
        """A process has its session."""
        if not item.session_present or item.session_id != self.session_id:
            self.sure.clear()
            self.asked.clear()
        elif item.session_epoch < self._newest_epoch:
            return  # it was taken over while this answer was on its way
        self.session_id = item.session_id
        self.newest, self._newest_epoch = link, item.session_epoch

    def ended(self, process: Process) -> None:
        """A process is gone."""
        self.staying = bool(self.filters)
        self.world.timeline.after(self.chance.randint(*BACK_US), self._begin_again)

    def _begin_again(self) -> None:
        if self.staying and self.process is None:
            self.begin()

"""The store of a run: the dictionary adapter of `dssd.store`, with commits that take a while.

A differential test holds that adapter equal to the SQLite adapter. A commit takes effect at one
moment between its request and its answer. If the daemon crashes in between, the commit may or may
not have been made, and no caller learns which. A full disk does not prevent it
(docs/decisions/0014).
"""

from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from dss_sim.groups.randomness import Randomness
from dss_sim.groups.schedule import Host, Schedule
from dssd.store.memory import MemoryStore
from dssd.store.port import Precondition, PreconditionFailed, Put, Write
from dssd.store.rows import GrantRow, ProgressRow

COMMIT_US = (300, 4_000)
SLOW_COMMIT_US = (50_000, 900_000)

T = TypeVar("T")


def at_once(awaited: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never has to wait, as those of the dictionary store."""
    try:
        awaited.send(None)
    except StopIteration as ended:
        value: T = ended.value
        return value
    raise AssertionError("it had to wait")


class AtOnce:
    """A turn that never ends: no other task waits for the loop."""

    async def give_way(self) -> None:
        """Go on."""


def progress_in(writes: Sequence[Write]) -> Iterator[tuple[ProgressRow, int]]:
    """The progress in a commit, each with the epoch of its grant; -1 if the commit has no grant."""
    rows = [write.row for write in writes if isinstance(write, Put)]
    grants = {
        (row.group_id, row.storage_topic_id, row.partition): row.grant_epoch
        for row in rows
        if isinstance(row, GrantRow)
    }
    for row in rows:
        if isinstance(row, ProgressRow):
            key = (row.group_id, row.storage_topic_id, row.partition)
            yield row, grants.get(key, -1)


class SimulatedStore:
    """Commits that take a while."""

    def __init__(self, schedule: Schedule, chance: Randomness) -> None:
        self.rows = MemoryStore()
        self._schedule = schedule
        self._chance = chance
        self._latency = chance.of("commits")
        self._pending: dict[int, bool] = {}
        """Commits not made yet, by number; False: the daemon died before."""
        self._asked = 0
        self.committed: Callable[[Sequence[Write]], None] = lambda writes: None
        """Called with each commit at the moment when it takes effect."""

    def commit(
        self,
        host: Host,
        writes: Sequence[Write],
        preconditions: Sequence[Precondition],
        answered: Callable[[list[int] | PreconditionFailed], None],
    ) -> None:
        """Commit within some milliseconds; the host hears of it some time later."""
        self._asked += 1
        self._pending[self._asked] = True
        low, high = COMMIT_US
        delay_us = low + int(self._latency.random() * (high - low))
        slow = self._chance.strike("slow_commit")
        if slow is not None:
            delay_us += slow.randint(*SLOW_COMMIT_US)
        answer = partial(self._make, self._asked, host, host.incarnation, writes, preconditions)
        self._schedule.after(delay_us, partial(answer, answered))

    def crash(self) -> None:
        """The daemon dies: each commit under way is made or not, at random."""
        for number in list(self._pending):
            self._pending[number] = self._latency.random() < 0.5

    def _make(
        self,
        number: int,
        host: Host,
        incarnation: int,
        writes: Sequence[Write],
        preconditions: Sequence[Precondition],
        answered: Callable[[list[int] | PreconditionFailed], None],
    ) -> None:
        if not self._pending.pop(number):
            return
        answer: list[int] | PreconditionFailed
        try:
            answer = at_once(self.rows.commit(writes, preconditions))
            self.committed(writes)
        except PreconditionFailed as failed:
            answer = failed
        if host.incarnation == incarnation:
            self._schedule.after(100, partial(answered, answer), host)

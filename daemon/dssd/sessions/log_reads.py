"""The reads of a session: at once from memory, else by reader tasks from the log.

A record that was just stored is in memory, and its consumer waits for it. So the task that takes in
the growth of streams reads it in the same step of the loop, but only so much that other tasks do
not wait for long. All other reads are for the readers, which may wait for the disk.

Invariant: each read that the delivery window asks for is answered once, unless the session ends.
This module does not know what the window makes of an answer.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dss_core.decode import hashes_in
from dss_core.errors import LogUnreadable, StreamNotFound
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dss_core.lane import MAIN, grant_and_level
from dss_core.progress import Ranges
from dssd.leaders.delivery_trouble import DeliveryTrouble
from dssd.log.port import Chunk, Log
from dssd.machines.delivery.events import ChunkRead, Read, ReadFailed
from dssd.queues.lane import Lane
from dssd.sessions.delivery_budget import DeliveryAccount
from dssd.store.rows import GroupRow
from dssd.subscriptions.agent import Agent

READ_AT_ONCE_BYTES_MAX = 256 << 10
"""How much of grown streams a session reads at once. The rest is for its readers, which let other
tasks run in between. Copying so much takes 0.1 ms."""

READ_AT_ONCE_COST_BYTES = 16 << 10
"""The fixed cost of such a read, in bytes, so that there are at most sixteen: each takes 0.1 to 0.2
ms with its steps of the delivery window, and a turn on the loop lasts 2 ms."""


Answer = ChunkRead | ReadFailed


@dataclass(frozen=True, slots=True)
class SessionGrant:
    """What a session knows of a grant, beside the delivery window."""

    agent: Agent
    stream: StreamId
    names: tuple[str, ...]
    """By level: the name of the stream, and in a lane those of its queues."""
    unwatch: Callable[[], None]
    matching: TopicFilter | None
    """The filter for frames; None where every record of the topic matches it."""
    lane: Lane | None = None
    """The queues of the stream, if the group has any."""

    @property
    def name(self) -> str:
        """The name of the stream, for people."""
        return self.names[MAIN]

    def level_of(self, stream: StreamId) -> int | None:
        """The level of a stream in the lane; None: it is not of this lane."""
        levels = (self.stream,) if self.lane is None else self.lane.levels
        return levels.index(stream) if stream in levels else None


class LogReads:
    """The reads of one connection; ``grants`` are the scheduler's, ``not_done`` the window's."""

    def __init__(
        self,
        log: Log,
        trouble: DeliveryTrouble,
        account: DeliveryAccount,
        grants: Mapping[int, SessionGrant],
        not_done: Callable[[int, Ranges], Ranges],
    ) -> None:
        self._log = log
        self._trouble = trouble
        self._account = account
        self._grants = grants
        self._not_done = not_done
        self._asked: deque[Read] = deque()
        """Reads that were asked for in the step under way."""
        self._queue: asyncio.Queue[Read] = asyncio.Queue()
        """Reads that are left to the readers. Bounded by the window, which asks for a few at a
        time."""
        self._at_once_bytes = 0

    def ask(self, read: Read) -> None:
        """The window wants to read; `at_once` comes next, in the same step."""
        self._asked.append(read)

    def begin_turn(self) -> None:
        """From now on read from memory at once, up to a bound or `end_turn`."""
        self._at_once_bytes = READ_AT_ONCE_BYTES_MAX

    def end_turn(self) -> None:
        """From now on leave all reads to the readers."""
        self._at_once_bytes = 0

    def at_once(self) -> Answer | None:
        """The next answer from memory to the reads asked for; the readers get the others."""
        while self._asked:
            read = self._asked.popleft()
            answer = self._from_memory(read) if self._at_once_bytes > 0 else None
            if answer is not None:
                return answer
            self._queue.put_nowait(read)
        return None

    async def next(self) -> Answer:
        """The answer of the next read that is for the readers."""
        read = await self._queue.get()
        bytes_max = await self._account.take(read.bytes_max)
        try:
            return await self._from_log(read, bytes_max)
        finally:
            self._account.read(bytes_max)

    async def _from_log(self, read: Read, bytes_max: int) -> Answer:
        known = self._known(read)
        if known is None:
            return _nothing(read)
        name, group, matching = known
        try:
            chunk = await self._log.read(
                read.stream, read.offset, bytes_max=bytes_max, matching=matching
            )
        except StreamNotFound:
            # Its topic was removed; the leader takes the stream back.
            return _nothing(read)
        except LogUnreadable as error:
            self._trouble.unreadable(name, group, error)
            return ReadFailed(read.grant)
        self._trouble.readable(name, group)
        damaged = self._not_done(read.grant, chunk.damaged)
        if damaged and not await self._trouble.damaged(name, group, damaged):
            return ReadFailed(read.grant)
        return self._answer(read, chunk)

    def _answer(self, read: Read, chunk: Chunk) -> ChunkRead:
        answer = _answer(read, chunk)
        number, level = grant_and_level(read.grant)
        grant = self._grants.get(number)
        if level == MAIN and grant is not None and grant.lane is not None and grant.lane.is_ordered:
            return answer._replace(keys=hashes_in(chunk.frames))
        return answer

    def _known(self, read: Read) -> tuple[str, GroupRow, TopicFilter | None] | None:
        """The name of the stream that is read, its group, the filter; None: the grant is over."""
        number, level = grant_and_level(read.grant)
        grant = self._grants.get(number)
        if grant is None:
            return None
        return grant.names[level], grant.agent.group, None if level else grant.matching

    def _from_memory(self, read: Read) -> ChunkRead | None:
        known = self._known(read)
        if known is None:
            return _nothing(read)
        name, group, matching = known
        bytes_max = self._account.room(read.bytes_max)
        if not bytes_max:
            return None
        try:
            chunk = self._log.read_in_memory(
                read.stream, read.offset, bytes_max=bytes_max, matching=matching
            )
        except StreamNotFound:
            return _nothing(read)
        if chunk is None:
            return None
        self._at_once_bytes -= len(chunk.frames) + READ_AT_ONCE_COST_BYTES
        self._trouble.readable(name, group)
        return self._answer(read, chunk)


def _nothing(read: Read) -> ChunkRead:
    return ChunkRead(read.grant, read.offset, b"", (), 0, read.offset, read.offset)


def _answer(read: Read, chunk: Chunk) -> ChunkRead:
    return ChunkRead(
        read.grant,
        read.offset,
        chunk.frames,
        chunk.mask,
        chunk.records,
        chunk.base,
        chunk.next,
        chunk.lost,
        chunk.damaged,
        chunk.at_end,
    )

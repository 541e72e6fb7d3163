"""How a session of the world reads the log, and what is reported of damage before it is passed.

Invariant: as in the daemon, damage is given to the window of a group that passes over it only once
operators can durably read of it; if that cannot be stored, the read has failed.
"""

from functools import partial
from typing import TYPE_CHECKING

from dss_core.routing import key_hash
from dss_sim.groups.history import Key, Passed
from dss_sim.groups.log import keys_in
from dssd.leaders.declarations import STALL
from dssd.machines.delivery.events import ChunkRead, Read, ReadFailed

if TYPE_CHECKING:
    from dss_sim.groups.session_host import SimulatedSession
    from dss_sim.groups.world import World

READ_US = (100, 1_000)


def _with_hashes(found: ChunkRead | ReadFailed) -> ChunkRead | ReadFailed:
    """The chunk with the hashes of its keys."""
    if isinstance(found, ReadFailed) or not found.frames:
        return found
    keys = keys_in(found.frames)
    span = range(found.base, found.base + found.records)
    return found._replace(keys=[hash_of(keys[at]) for at in span])


def hash_of(key: Key) -> int:
    """The daemon's hash of a key."""
    return 0 if key is None else key_hash(key.encode("latin-1")) or 1


class SessionReads:
    """The reads of one session."""

    def __init__(self, world: "World", session: "SimulatedSession") -> None:
        self._world = world
        self._session = session

    def begin(self, read: Read) -> None:
        """The window wants to read; it is answered after a while."""
        self._world.after(READ_US, partial(self._read, read), self._session.host)

    def _read(self, read: Read) -> None:
        # The filter was applied when records first failed, so a queue has none.
        world, grant = self._world, self._session.grants.get(read.grant)
        every = grant.every if grant is not None else 0
        found: ChunkRead | ReadFailed
        if world.log.unreadable_until_us.get(read.stream, 0) > world.schedule.now_us:
            found = ReadFailed(read.grant)
        else:
            found = world.log.read(read, every)
            if grant is not None and grant.lane is not None and grant.lane.is_ordered:
                found = _with_hashes(found)
        # The stream may grow before the session hears what was there.
        world.after(READ_US, partial(self._take, found), self._session.host)

    def _take(self, found: ChunkRead | ReadFailed) -> None:
        if isinstance(found, ChunkRead) and found.damaged and not self._told(found):
            found = ReadFailed(found.grant)
        self._session.take_read(found)

    def _told(self, found: ChunkRead) -> bool:
        """Report damage that is to be passed; returns whether the report is durable."""
        world, grant = self._world, self._session.grants.get(found.grant)
        if grant is None or self._session.closed or grant.agent.group.on_damage == STALL:
            return True
        if world.schedule.now_us < world.writer.full_until_us:
            return False
        group, stream = grant.agent.group.name, world.names[grant.stream]
        for start, end in self._session.window.not_done(found.grant, found.damaged):
            world.tell(Passed(world.schedule.now_us, group, stream, start, end))
        return True

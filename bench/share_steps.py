"""The longest step of a leader that shares out 10,000 streams, by shards and one by one.

Run by itself: ``python bench/share_steps.py``. The real machine, whose members say that they hold
what they are granted; each step is timed by the thread's own clock.
"""

import gc
from collections import deque
from time import thread_time_ns

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.leader.events import (
    Committed,
    Instructed,
    LeaderInput,
    Persist,
    Received,
    Send,
    ShareByShards,
    StoredStream,
    Ticked,
    TookOver,
)
from dssd.machines.leader.machine import step
from dssd.machines.leader.slicing import Slicing
from dssd.machines.leader.state import Leader
from dssd.machines.messages import (
    Grant,
    LeaderWanted,
    Ping,
    Revoke,
    Revoked,
    RevokeFinished,
    StreamReport,
    ToBorrower,
    ToLeader,
    UpdateProgress,
)

STREAMS = 10_000
SETTLES_MS = 20_000
"""By the leader's clock, until everything has changed hands; no deadline is waited for."""
PING_EVERY_MS = 500
NS_PER_MS = 1e6
CASES = {
    "first": "the first three members come",
    "fourth": "one more member comes",
    "halved": "half as many shards",
    "single": "the first three, without shards",
}


class Shared:
    """A leader and its members, on a clock of their own."""

    def __init__(self, slicing: Slicing | None) -> None:
        self.leader = Leader(1)
        self.now_ms = 0
        self.longest_ns = 0
        self.members: list[bytes] = []
        rows = [StoredStream(StreamId(1, at), Progress(0), 0, 0, None) for at in range(STREAMS)]
        self.feed(TookOver(0, tuple(rows), False, slicing=slicing))

    def feed(self, *inputs: LeaderInput) -> None:
        """Give inputs, and carry out what the leader asks; time each step."""
        todo = deque(inputs)
        while todo:
            began_ns = thread_time_ns()
            effects = step(self.leader, todo.popleft())[1]
            self.longest_ns = max(self.longest_ns, thread_time_ns() - began_ns)
            for effect in effects:
                match effect:
                    case Persist():
                        todo.append(Committed(effect.commit_id, self.now_ms))
                    case Send(message):
                        todo.extend(Received(each, self.now_ms) for each in _answers(message))
                    case _:
                        pass

    def join(self, *names: bytes) -> None:
        """Members come, and all that follows from it is done."""
        for name in names:
            self.members.append(name)
            wanted = LeaderWanted(name, 0, b"session of " + name, name.decode())
            self.feed(Received(wanted, self.now_ms))
        self.settle()

    def settle(self) -> None:
        """Let time pass, while members say that they live."""
        ends_ms = self.now_ms + SETTLES_MS
        pings_ms = self.now_ms
        while self.now_ms < ends_ms:
            if self.now_ms >= pings_ms:
                pings_ms += PING_EVERY_MS
                for name in self.members:
                    self.feed(Received(Ping(name, 1, self.now_ms), self.now_ms))
            next_ms = self.leader.timers.next_ms()
            self.now_ms = min(max(next_ms or pings_ms, self.now_ms), pings_ms, ends_ms)
            if next_ms is not None and next_ms <= self.now_ms:
                self.feed(Ticked(self.now_ms))


def _answers(message: ToBorrower) -> list[ToLeader]:
    """What a member says that has nothing out."""
    match message:
        case Grant(borrower, epoch, streams):
            held = [_report(each.stream, each.grant_epoch) for each in streams]
            return [UpdateProgress(borrower, epoch, tuple(held))]
        case Revoke(borrower, epoch, stream, grant_epoch):
            last = (_report(stream, grant_epoch),)
            return [UpdateProgress(borrower, epoch, last, final=True)]
        case Revoked(borrower, epoch, stream, grant_epoch):
            return [RevokeFinished(borrower, epoch, stream, grant_epoch)]
        case _:
            return []


def _report(stream: StreamId, grant_epoch: int) -> StreamReport:
    return StreamReport(stream, grant_epoch, Progress(0), 0, sent=0)


def longest_ms() -> dict[str, float]:
    """Of each case, once."""
    found: dict[str, float] = {}

    def note(case: str, shared: Shared, count: int) -> None:
        held = [len(shared.leader.members[each].streams) for each in shared.members]
        assert (len(held), sum(held)) == (count, STREAMS), held
        found[case] = shared.longest_ns / NS_PER_MS
        shared.longest_ns = 0

    partitions = {1: STREAMS}
    alone = Shared(None)
    alone.longest_ns = 0
    alone.join(b"ann", b"bob", b"cid")
    note("single", alone, 3)
    shared = Shared(Slicing(STREAMS, partitions))
    shared.longest_ns = 0
    shared.join(b"ann", b"bob", b"cid")
    note("first", shared, 3)
    shared.join(b"dan")
    note("fourth", shared, 4)
    halved = Slicing(STREAMS // 2, partitions)
    shared.feed(Instructed(ShareByShards(1, halved), shared.now_ms))
    shared.settle()
    note("halved", shared, 4)
    return found


if __name__ == "__main__":
    gc.freeze()
    for case, took_ms in longest_ms().items():
        print(f"{took_ms:6.1f} ms  {CASES[case]}")

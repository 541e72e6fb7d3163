"""What an ordered lane costs the loop of the daemon: the longest step of its delivery window, and
the memory of a record that waits.

Run by itself: ``python bench/lane_steps.py``. The real machine has a lane alone: reads, moves and
openings are answered at once, with as much as the daemon answers at a time. Costs are processor
time of the thread; garbage is collected as seldom as the daemon has it, and what that takes is in
them. Records are as small as they get, so that a chunk has as many as it can.
"""

import gc
import tracemalloc
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import thread_time_ns

from workload import stored

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import hashes_in
from dss_core.frame import spans_of
from dss_core.ids import StreamId
from dss_core.lane import DEAD, MAIN, RETRY
from dss_core.progress import Progress, Ranges, normalised
from dssd.machines.delivery.causes import FOLLOWS
from dssd.machines.delivery.events import (
    ChunkRead,
    Deliver,
    DeliveryInput,
    EntriesRead,
    Entry,
    Installed,
    LaneOpened,
    Move,
    Moved,
    Nak,
    OpenLane,
    Read,
    Settle,
    TakeBack,
    Ticked,
)
from dssd.machines.delivery.frame_plan import FrameSpans
from dssd.machines.delivery.window import DeliveryWindow
from dssd.machines.lanes.key_index import KeyIndex, Waiting
from dssd.machines.messages import GrantedStream
from dssd.machines.queues import QueueState, RetryPolicy
from dssd.process import COLLECT_AFTER_OBJECTS, COLLECT_ALL_AFTER, COLLECT_MIDDLE_AFTER
from dssd.queues.opening import ENTRIES_TOLD_MAX

CASES = {
    "followers": "20,000 followers of one key",
    "keys": "20,000 followers of 10,000 keys",
    "beside": "every other record a follower",
    "behind": "8,000 sent behind a refused one",
    "dies": "a head with 20,000 followers dies",
    "opened": "a lane with 100,000 entries lent",
}
FOLLOWERS, KEYS, ENTRIES, SENT = 20_000, 10_000, 100_000, 8_000
FRAME_RECORDS = 1_000
GRANT = 4
STREAMS = StreamId(1, 0), StreamId(2, 0), StreamId(3, 0)
"""By level."""
HOUR_MS = 3_600_000
NS_PER_MS = 1e6


def bad_key(number: int) -> bytes:
    """One of many."""
    return b"b%05d" % number


class Lane:
    """One lane, its holder and a client that says what it is told to."""

    def __init__(self, keys: list[bytes | None], *, entries: int = 0, max_deliver: int = 5) -> None:
        self.frames = [
            _frame(keys[base : base + FRAME_RECORDS], base)
            for base in range(0, len(keys), FRAME_RECORDS)
        ]
        self.hashes: array[int] = hashes_in(b"".join(self.frames))
        self.out: deque[tuple[int, int]] = deque()
        """With the client: level and offset, as they came."""
        self.queues: dict[int, list[Entry]] = {RETRY: [], DEAD: []}
        for at in range(entries):
            self.queues[RETRY].append(self._entry(RETRY, MAIN, at, at, HOUR_MS, 1))
        self.now_ms = 0
        self.longest_ns = 0
        self.window = DeliveryWindow(_cut)
        policy = RetryPolicy(max_deliver, (HOUR_MS,), 1 << 30, 1 << 40, ordered=True, blocks=True)
        queues = (QueueState(STREAMS[RETRY], applied_end=entries), QueueState(STREAMS[DEAD]))
        granted = GrantedStream(
            STREAMS[MAIN], 1, Progress(entries), 0, (), len(keys), queues=queues
        )
        self.feed(Installed(GRANT, 1, granted, HOUR_MS, policy=policy))

    def _entry(self, to: int, level: int, at: int, origin: int, due_ms: int, attempt: int) -> Entry:
        key = self.hashes[origin]
        return Entry(len(self.queues[to]), due_ms, attempt, level, at, 10, origin, key)

    def feed(self, *inputs: DeliveryInput) -> None:
        """Give inputs, and carry out what the window asks; time each step."""
        todo = deque(inputs)
        while todo:
            given = todo.popleft()
            began_ns = thread_time_ns()
            effects = self.window.step(given, self.now_ms)
            self.longest_ns = max(self.longest_ns, thread_time_ns() - began_ns)
            for effect in effects:
                match effect:
                    case Read():
                        todo.append(self._read(effect))
                    case Deliver():
                        self._take(effect)
                    case TakeBack(grant, ranges):
                        self._drop(grant - GRANT, ranges)
                    case OpenLane():
                        todo.extend(self._opened())
                    case Move():
                        todo.append(self._moved(effect))
                    case _:
                        pass

    def _read(self, asked: Read) -> ChunkRead:
        level = asked.grant - GRANT
        frames = self.frames
        if level != MAIN:
            count = len(self.queues[level])
            frames = [
                _frame([None] * min(FRAME_RECORDS, count - base), base)
                for base in range(0, count, FRAME_RECORDS)
            ]
        found, size, at = list[bytes](), 0, asked.offset // FRAME_RECORDS
        base = at * FRAME_RECORDS
        while at < len(frames) and (not found or size + len(frames[at]) <= asked.bytes_max):
            found.append(frames[at])
            size += len(frames[at])
            at += 1
        length = len(self.hashes) if level == MAIN else len(self.queues[level])
        end = max(min(at * FRAME_RECORDS, length), asked.offset)
        records = end - base if found else 0
        keys = self.hashes[base:end] if level == MAIN else ()
        return ChunkRead(
            asked.grant, asked.offset, b"".join(found), (), records,
            base if found else end, end, at_end=end >= length, keys=keys,
        )  # fmt: skip

    def _take(self, delivery: Deliver) -> None:
        first, mask = delivery.base, iter((*delivery.mask, (delivery.end, delivery.end)))
        level = delivery.grant - GRANT
        for start, end in mask:
            self.out += ((level, at) for at in range(first, start))
            first = end

    def _drop(self, level: int, ranges: Ranges) -> None:
        gone = {(level, at) for start, end in ranges for at in range(start, end)}
        self.out = deque(each for each in self.out if each not in gone)

    def _opened(self) -> Iterator[DeliveryInput]:
        entries = self.queues[RETRY]
        for at in range(0, len(entries), ENTRIES_TOLD_MAX):
            piece = tuple(entries[at : at + ENTRIES_TOLD_MAX])
            yield EntriesRead(GRANT, RETRY, piece, piece[-1].offset + 1)
        yield LaneOpened(GRANT)

    def _moved(self, asked: Move) -> Moved:
        made: list[tuple[int, Entry]] = []
        for piece in asked.pieces:
            for at in range(piece.start, piece.end):
                source = None if piece.level == MAIN else self.queues[piece.level][at]
                origin = at if source is None or source.origin is None else source.origin
                follows = piece.cause == FOLLOWS and source is not None
                attempt = source.attempt if follows and source is not None else piece.attempt
                entry = self._entry(piece.to, piece.level, at, origin, piece.due_ms, attempt)
                self.queues[piece.to].append(entry)
                made.append((piece.to, entry))
        return Moved(asked.grant, tuple(sorted(made, key=lambda each: (each[0], each[1].offset))))

    # The client

    def settle(self, level: int, acked: list[int], refused: list[int]) -> None:
        """It acknowledges these, and refuses those, which it all had been handed out."""
        told = _ranges([*acked, *refused])
        naks = tuple(Nak(at, at + 1) for at in refused)
        frontier = told[-1][1] if level == MAIN else 0
        self.feed(Settle(GRANT + level, _ranges(acked), naks, frontier, handed_out=told))

    def take(self, most: int) -> list[tuple[int, int]]:
        """The next that came."""
        return [self.out.popleft() for _ in range(min(most, len(self.out)))]

    def tick(self, by_ms: int) -> None:
        """Let time pass."""
        until_ms = self.now_ms + by_ms
        while self.window.wake_at_ms is not None and self.window.wake_at_ms <= until_ms:
            self.now_ms = max(self.now_ms, self.window.wake_at_ms)
            self.feed(Ticked())
        self.now_ms = until_ms


def _frame(keys: list[bytes | None], base: int) -> bytes:
    columns = Columns(payloads=[b""] * len(keys), keys=keys, subjects="t", timestamps_us=0)
    return stored(build_frame(columns, partition=0, producer_id=bytes(16), sequence=0), base)


def _cut(frames: bytes) -> FrameSpans:
    return FrameSpans(*spans_of(frames))


def _ranges(offsets: list[int]) -> Ranges:
    return normalised((at, at + 1) for at in offsets)


# The cases


def followers() -> Lane:
    """The first of a key is refused, and all that comes is of this key."""
    lane = Lane([bad_key(0)] * (FOLLOWERS + 1))
    _refuse_first(lane, 1)
    return lane


def keys() -> Lane:
    """The first of each of many keys is refused; twice as many follow them."""
    each: list[bytes | None] = [bad_key(at) for at in range(KEYS)]
    lane = Lane(each * (1 + FOLLOWERS // KEYS))
    _refuse_first(lane, KEYS)
    return lane


def beside() -> Lane:
    """Every other record is a follower; the others are acknowledged a hundred at a time."""
    lane = Lane([bad_key(0), *([b"good", bad_key(0)] * FOLLOWERS)])
    _refuse_first(lane, 1)
    while taken := lane.take(100):
        lane.settle(MAIN, [at for level, at in taken if level == MAIN], [])
        lane.tick(100)
    return lane


def behind() -> Lane:
    """As much as the credit allows is with the client, all of it of one key."""
    lane = Lane([bad_key(0)] * SENT)
    _refuse_first(lane, 1)
    return lane


def dies() -> Lane:
    """It is refused for the last time, and all that waits behind it goes to the dead letters."""
    lane = Lane([bad_key(0)] * (FOLLOWERS + 1), max_deliver=2)
    _refuse_first(lane, 1)
    lane.tick(2 * HOUR_MS)
    ((level, at),) = lane.take(2)
    lane.settle(level, [], [at])
    lane.tick(HOUR_MS)
    assert len(lane.queues[DEAD]) == FOLLOWERS + 1
    return lane


def opened() -> Lane:
    """Many entries of as many keys as half of them wait."""
    return Lane([bad_key(at % (ENTRIES // 2)) for at in range(ENTRIES)], entries=ENTRIES)


def _refuse_first(lane: Lane, count: int) -> None:
    left = count
    while left:
        taken = [at for _, at in lane.take(min(left, 100))]
        lane.settle(MAIN, [], taken)
        left -= len(taken)
    lane.tick(1_000)


RUNS: dict[str, Callable[[], Lane]] = {
    "followers": followers,
    "keys": keys,
    "beside": beside,
    "behind": behind,
    "dies": dies,
    "opened": opened,
}


@contextmanager
def _collected_as_in_the_daemon() -> Iterator[None]:
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER_OBJECTS, COLLECT_MIDDLE_AFTER, COLLECT_ALL_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def longest_ms() -> dict[str, float]:
    """The longest step of each case."""
    took: dict[str, float] = {}
    for name, run in RUNS.items():
        with _collected_as_in_the_daemon():
            took[name] = run().longest_ns / NS_PER_MS
    return took


def bytes_of_an_entry() -> float:
    """Of a lane in which many keys wait, each with a record or two."""
    tracemalloc.start()
    index, at = KeyIndex(), 0
    before = tracemalloc.get_traced_memory()[0]
    for at in range(ENTRIES):
        key = (at % (ENTRIES // 2)) * 0x9E37_79B9_7F4A_7C15 & (1 << 64) - 1
        due_ms = 1_795_000_000_000 + at
        index.add(Waiting(1_000_000 + at, RETRY, 2_000_000 + at, key or 1, due_ms, 1))
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return held / ENTRIES


if __name__ == "__main__":
    for case, took_ms in longest_ms().items():
        print(f"{CASES[case]:<40} {took_ms:6.1f} ms at most a step")
    print(f"{'a record that waits, in the index':<40} {bytes_of_an_entry():6.0f} bytes")

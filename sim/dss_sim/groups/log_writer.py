"""The writer of the log: group commit as the daemon does it, and a disk that may fail.

::

    append ─► queue ─► placed ─► written ─► synced ─► shown and answered
                          │         └ the process dies: any prefix of the batch survives
                          └ the disk is full: all of the batch is refused and taken back

Invariant: nothing is shown or answered before it is as durable as its topic asks, and nothing at
all once the disk has failed: then the whole daemon dies at once. `TopicFile.restart` reads again
what survives a death, and it is reported before anybody can read it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from dss_core.errors import (
    DiskFull,
    DssError,
    OutcomeUnknown,
    StorageTopicSealed,
    StreamNotFound,
)
from dss_core.ids import StreamId
from dss_sim.groups.history import Damaged, Disturbed, Key, Lost, Stored, Unreadable
from dss_sim.groups.store import COMMIT_US
from dss_sim.groups.topic_file import Frame, TopicFile
from dssd.log.producer_room import NOBODY
from dssd.log.recent_sequences import FirstAnswer
from dssd.rpc.producer_fencing import ProducerFencing

if TYPE_CHECKING:
    from dss_sim.groups.world import World

SYNC_US = (200, 3_000)
SLOW_SYNC_US = (50_000, 900_000)
MARK_SHARE = 0.25
"""The share of batches after which a mark is made."""
ROLL_SHARE = 0.05
"""The share of batches after which a new segment begins."""

Outcome = FirstAnswer | DssError
Answered = Callable[[Outcome, bool], None]
"""Called with the outcome of a frame, and whether it is a repeat."""


class Asked(NamedTuple):
    """A frame that a producer wants stored."""

    stream: StreamId
    call: int
    """The connection that brought it."""
    producer_id: bytes
    sequence: int
    content: int
    """The number of the frame at its producer, whatever sequence it has now."""
    keys: tuple[Key, ...]
    """The keys of its records."""
    answered: Answered


Placed = tuple[Asked, Outcome, bool]
"""A frame of a batch, its answer, and whether it is a repeat."""


class Writer:
    """The one writer of all topics."""

    def __init__(self, world: "World") -> None:
        self.up = True
        self.steps = 0
        """The steps of all batches: each batch is written, then synced."""
        self.dies = world.plan.dies
        self.full_until_us = 0
        self.sync_fails = False
        """Whether the next step finds the disk full."""
        self._world = world
        self._chance = world.chance.of("disk")
        self._files: dict[int, TopicFile] = {}
        self._queue: list[Asked] = []
        self._batch: list[Placed] | None = None
        self._seals: list[tuple[int, Callable[[], None]]] = []
        self._raising: set[int] = set()
        """Storage topics whose ceilings are being stored."""
        self.calls = ProducerFencing()
        self.lives = 0
        """How often the daemon died."""
        self._clean = True
        """How the last run of the daemon ended."""

    # Appending

    def open(self, storage_topic_id: int, partitions: int, durability: str) -> None:
        """A storage topic is born."""
        self._files[storage_topic_id] = TopicFile(storage_topic_id, partitions, durability)

    def append(self, asked: Asked) -> None:
        """Store a frame; the producer is answered unless the daemon dies."""
        try:
            now_s = self._world.schedule.now_us / 1e6
            share = asked.stream.storage_topic_id, NOBODY
            self.calls.check(asked.producer_id, share, asked.call, now_s)
        except OutcomeUnknown as superseded:
            asked.answered(superseded, False)
            return
        self._queue.append(asked)
        if self._batch is None:
            self._commit()

    def seal(self, storage_topic_id: int, sealed: Callable[[], None]) -> None:
        """Refuse frames from the next batch on; never, if the daemon dies before."""
        if not self.up:
            return
        if self._batch is None:
            self._files[storage_topic_id].seal()
            sealed()
        else:
            self._seals.append((storage_topic_id, sealed))

    def remove(self, storage_topic_ids: Sequence[int]) -> None:
        """Storage topics are gone; what was on its way to them finds none."""
        for storage_topic_id in storage_topic_ids:
            del self._files[storage_topic_id]

    def heal(self) -> None:
        """The disk does what it should."""
        self.full_until_us = 0
        self.sync_fails = False
        self.dies = None

    def _commit(self) -> None:
        queue, self._queue = self._queue, []
        firsts = {number: len(file.frames) for number, file in self._files.items()}
        batch = [self._placed(asked) for asked in queue]
        if self._world.schedule.now_us < self.full_until_us:
            batch = self._taken_back(batch, firsts)
        self._batch = batch
        if self._dies_here():
            return
        done = partial(self._written, self.lives)
        if any(file.wants_sync() for file in self._files.values()):
            slow = self._world.chance.strike("slow_sync")
            if slow is not None:
                self._world.schedule.after(slow.randint(*SLOW_SYNC_US), done)
            else:
                self._world.after(SYNC_US, done)
        else:
            done()

    def _placed(self, asked: Asked) -> Placed:
        file = self._files.get(asked.stream.storage_topic_id)
        if file is None:
            return asked, StreamNotFound(stream=asked.stream), False
        partition = asked.stream.partition
        try:
            known = file.producers.answer(partition, asked.producer_id, asked.sequence)
        except DssError as refused:
            return asked, refused, False
        if known is not None:
            return asked, known, True
        if file.sealed_ends is not None:
            number = file.storage_topic_id
            return asked, StorageTopicSealed(topic=f"id {number}", ordinal="?"), False
        now_us = self._world.schedule.now_us
        sent = (asked.producer_id, asked.sequence, asked.content, asked.keys)
        placed = file.place(partition, *sent, now_us)
        return asked, FirstAnswer(placed.base, placed.records, now_us), False

    def _taken_back(self, batch: list[Placed], firsts: dict[int, int]) -> list[Placed]:
        refused: set[tuple[int, int, int]] = set()
        for number, file in self._files.items():
            back = file.take_back(firsts[number])
            refused.update((number, frame.partition, frame.base) for frame in back)
        # A repeat within the batch was answered by a frame that is taken back, so it is refused
        # too.
        return [
            (asked, DiskFull(), False)
            if isinstance(outcome, FirstAnswer) and (*asked.stream, outcome.base_offset) in refused
            else (asked, outcome, repeated)
            for asked, outcome, repeated in batch
        ]

    def _written(self, life: int) -> None:
        if life != self.lives:
            return
        if self.sync_fails:
            self.sync_fails = False
            self._world.crash_daemon()
            return
        for file in self._files.values():
            if file.wants_sync():
                file.sync()
        if self._dies_here():
            return
        self._report()

    def _dies_here(self) -> bool:
        self.steps += 1
        if self.dies is None or self.steps < self.dies.step:
            return False
        power, self.dies = self.dies.power, None
        self._world.tell(Disturbed(self._world.schedule.now_us, "dies in a group commit"))
        self._world.crash_daemon(power=power)
        return True

    def _report(self) -> None:
        batch, self._batch = self._batch, None
        assert batch is not None
        for file in self._files.values():
            for frame in file.show():
                self._show(file, frame)
            self._raise_ceilings(file)
        for asked, outcome, repeated in batch:
            if asked.stream.storage_topic_id not in self._files:
                outcome = StreamNotFound(stream=asked.stream)
            asked.answered(outcome, repeated)
        self._keep_house()
        seals, self._seals = self._seals, []
        for storage_topic_id, sealed in seals:
            if storage_topic_id in self._files:
                self._files[storage_topic_id].seal()
                self._world.schedule.after(0, sealed)
        if self._queue:
            self._commit()

    def _show(self, file: TopicFile, frame: Frame) -> None:
        """Report a frame before sessions can hear of it, and let them read it."""
        world = self._world
        stream = StreamId(file.storage_topic_id, frame.partition)
        producer = world.producer_names[frame.producer_id]
        place = (world.names[stream], frame.base, frame.records)
        sent, now_us = (producer, frame.sequence, frame.content), world.schedule.now_us
        world.tell(Stored(now_us, *place, *sent, file.durability, frame.keys))
        world.log.enter(stream, frame.base, frame.keys)

    def _raise_ceilings(self, file: TopicFile) -> None:
        """Appends do not wait for this: a frame above the ceiling is synced before it is shown."""
        number = file.storage_topic_id
        if number not in self._raising and (ceilings := file.low_ceilings()):
            self._raising.add(number)
            stored = partial(self._ceilings_stored, self.lives, file, ceilings)
            self._world.after(COMMIT_US, stored)

    def _ceilings_stored(self, life: int, file: TopicFile, ceilings: Mapping[int, int]) -> None:
        if life == self.lives:
            file.store_ceilings(ceilings)
            self._raising.discard(file.storage_topic_id)

    def _keep_house(self) -> None:
        drawn = self._chance.random()
        for file in self._files.values():
            if drawn < ROLL_SHARE:
                file.roll()
            elif drawn < MARK_SHARE:
                file.mark()

    # Dying and coming back

    def close(self) -> None:
        """The daemon stops in order: frames that were handed over are stored and answered first."""
        while self._batch is not None:
            self._written(self.lives)
        if self.up:
            for file in self._files.values():
                file.close()
            self._end(clean=True)

    def crash(self, *, power: bool) -> None:
        """The process dies, or the machine."""
        if not self.up:
            return
        self._end(clean=False)
        for file in self._files.values():
            file.crash(self._chance, power=power)

    def _end(self, *, clean: bool) -> None:
        self.up = False
        self._clean = clean
        self.lives += 1
        self._batch = None
        self.calls = ProducerFencing()
        self._queue.clear()
        self._seals.clear()
        self._raising.clear()

    def restart(self) -> None:
        """The daemon starts: what survived becomes readable, before anybody reads."""
        if self.up:
            return
        self.up = True
        for file in self._files.values():
            self._restart(file)

    def _restart(self, file: TopicFile) -> None:
        world = self._world
        survived, damaged, lost = file.restart(clean=self._clean)
        for frame in survived:
            self._show(file, frame)
        for partition, start, end in damaged:
            stream = StreamId(file.storage_topic_id, partition)
            world.tell(Damaged(world.schedule.now_us, world.names[stream], start, end))
            world.log.claim(stream, end)
        for partition, start, end in lost:
            stream = StreamId(file.storage_topic_id, partition)
            gone = max(end, world.log.bounds(stream).end)
            world.tell(Lost(world.schedule.now_us, world.names[stream], start, gone))
            world.log.lose(stream, start, end)

    def rot(self, stream: StreamId, at: int, count: int, *, heads: bool, marks: bool) -> None:
        """Some frames of a stream become unreadable, from the n-th possible one on."""
        world = self._world
        file = self._files[stream.storage_topic_id]
        if marks:
            file.lose_marks()
        gone = file.rot(stream.partition, at, count, heads=heads)
        for frame in gone:
            told = Damaged(world.schedule.now_us, world.names[stream], frame.base, frame.end)
            world.tell(told)
        world.log.damage(stream, [(frame.base, frame.end) for frame in gone])

    def lose_sectors(self, stream: StreamId, at: int, count: int) -> None:
        """Reads of some frames of a stream fail from now on, from the n-th possible one on."""
        world = self._world
        gone = self._files[stream.storage_topic_id].durable(stream.partition, at, count)
        for frame in gone:
            told = Unreadable(world.schedule.now_us, world.names[stream], frame.base, frame.end)
            world.tell(told)
        world.log.lose_sectors(stream, [(frame.base, frame.end) for frame in gone])

"""The order of keys, in groups that are ordered: docs/delivery.md.

    K1  of a key one record is with a program at a time, or several of one batch: what a member was
        handed under a grant, and neither acknowledged nor refused, keeps the others of its key
        waiting
    K2  before a record is handed out, each earlier one of its key is out of its way, also those of
        storage topics before its own: a user acknowledged it, an operator gave it up, or it is dead
        where that holds up nothing

So records that are not acknowledged may come again, then in order, from the first one on. A program
that keeps a record for longer than its ack wait may be handed that record again, and no other.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from dss_sim.groups.checked_stream import CheckedStream
from dss_sim.groups.history import Acked, HandedOut, Key, Nakked, OutOfTime, Passed, Queued
from dss_sim.groups.log_rules import LogRules
from dss_sim.groups.queue_rules import QueueRules
from dss_sim.groups.violation import Violation
from dssd.machines.delivery.causes import ACK_WAIT, FOLLOWS

NO_BATCH = -1

Holder = tuple[str, str, str, int]
"""Group, stream of the lane, member and grant epoch."""
Origin = tuple[str, int]
"""The stream and the offset where a record was at first."""
Streams = Mapping[str, CheckedStream]


class KeyRules:
    """Takes the events of ordered groups, and ignores others."""

    def __init__(self, queues: QueueRules, log: LogRules) -> None:
        self._queues = queues
        self._log = log
        self._with_program: defaultdict[Holder, dict[Origin, tuple[Key, int]]] = defaultdict(dict)
        """The keys and batches of records with programs."""
        self._newest: dict[tuple[str, str], int] = {}
        """The newest grant epoch that handed out of a stream, or of its queues."""

    def handed_out(self, event: HandedOut, streams: Streams, every: int) -> None:
        """User code got a record.

        Raises:
            Violation: K1, K2: it was not the record's turn.
        """
        if event.key is None or not self._queues.is_ordered(event.group, event.stream):
            return
        main = self._queues.main_of(event.group, event.stream)
        origin = self._queues.origin_of(event.group, event.stream, event.offset)
        newest = max(self._newest.get((event.group, main), 0), event.grant_epoch)
        self._newest[event.group, main] = newest
        if event.grant_epoch < max(newest, streams[main].moved_epoch):
            return
        if self._is_outdated(event, main, streams):
            return
        out = self._with_program[event.group, main, event.member, event.grant_epoch]
        batch = event.batch or NO_BATCH
        others = [
            at for at, (key, of) in out.items() if key == event.key and at != origin and of != batch
        ]
        if others:
            raise Violation("K1", f"the program has {others} of its key: {event}")
        out[origin] = event.key, event.batch
        for stream, at in self._before(origin, event.key, streams):
            if out.get((stream, at)) == (event.key, batch):
                continue
            if not self._is_out_of_its_way(event, stream, at, streams[stream], every):
                raise Violation("K2", f"{stream} @{at} of its key is not settled: {event}")

    def _is_outdated(self, event: HandedOut, main: str, streams: Streams) -> bool:
        """Whether its stream was taken back, and an earlier one is read again since: a lost client
        may not have heard of that."""
        if event.grant_epoch >= streams[main].grant_epoch:
            return False
        topic, ordinal, _ = main.rsplit("/", 2)
        return any(
            lent.moved_epoch and int(other.rsplit("/", 2)[1]) < int(ordinal)
            for other, lent in streams.items()
            if "~" not in other and other.rsplit("/", 2)[0] == topic
        )

    def _before(self, origin: Origin, key: Key, streams: Streams) -> Iterator[Origin]:
        """The earlier records of a key in the topic."""
        stream, offset = origin
        topic, ordinal, _ = stream.rsplit("/", 2)
        for other in streams:
            if other == stream:
                offsets = self._log.offsets_of(other, key)
                yield from ((other, at) for at in offsets if at < offset)
                continue
            of, number, _ = other.rsplit("/", 2)
            if "~" not in other and of == topic and int(number) < int(ordinal):
                yield from ((other, at) for at in self._log.offsets_of(other, key))

    def _is_out_of_its_way(
        self, event: HandedOut, main: str, at: int, lent: CheckedStream, every: int
    ) -> bool:
        if self._queues.waits_since_before(event.group, main, at):
            return False
        if at < lent.start and at not in lent.reopened:
            return True
        if every and at % every == 0:
            return True
        has_left = self._queues.has_left(event.group, main, at)
        if at in lent.acked or (lent.stored.is_acked(at) and not has_left):
            return True
        return self._log.is_hole(main, at) or self._queues.is_settled(event.group, main, at)

    def queued(self, event: Queued) -> None:
        """A record is in a queue: if its ack wait ended, the program has it only in its own eyes;
        likewise records taken back with it, or refused with an earlier one of its batch."""
        if event.cause in (ACK_WAIT, FOLLOWS) and self._queues.is_ordered(
            event.group, event.stream
        ):
            main = self._queues.main_of(event.group, event.stream)
            origin = self._queues.origin_of(event.group, event.stream, event.offset)
            for holder, out in self._with_program.items():
                if holder[:2] == (event.group, main) and origin in out:
                    _take(out, origin, with_batch=True)

    def passed(self, event: Passed) -> None:
        """Records cannot be read any more, and their group goes on without them."""
        self._forget(event.group, event.stream, event.stream, event.start, event.end)

    def _forget(self, group: str, main: str, stream: str, start: int, end: int) -> None:
        for holder, out in self._with_program.items():
            if holder[:2] == (group, main):
                for origin in [each for each in out if each[0] == stream]:
                    if start <= origin[1] < end:
                        del out[origin]

    def let_go(self, event: Acked | Nakked | OutOfTime) -> None:
        """The program is done with a record, or had it for too long."""
        if not self._queues.is_ordered(event.group, event.stream):
            return
        main = self._queues.main_of(event.group, event.stream)
        origin = self._queues.origin_of(event.group, event.stream, event.offset)
        for holder, out in self._with_program.items():
            if holder[:3] == (event.group, main, event.member) and origin in out:
                _take(out, origin, with_batch=not isinstance(event, Acked))


def _take(out: dict[Origin, tuple[Key, int]], origin: Origin, *, with_batch: bool) -> None:
    """The program no longer has it; nor, if it failed, later records of its key in its batch, of
    which no event tells, and which may wait for room."""
    of_batch = out.pop(origin)
    if with_batch and of_batch[1]:
        for at in [at for at, each in out.items() if each == of_batch and _is_behind(at, origin)]:
            del out[at]


def _is_behind(one: Origin, other: Origin) -> bool:
    ordinals = [int(each[0].rsplit("/", 2)[1]) for each in (one, other)]
    return (ordinals[0], one[1]) > (ordinals[1], other[1])

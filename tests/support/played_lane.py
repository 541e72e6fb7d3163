"""A lane between made-up streams and a client that tests play; its holder may die at any point."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from dss_core.ids import StreamId
from dss_core.lane import DEAD, MAIN, RETRY
from dss_core.progress import Progress, Ranges, normalised
from dssd.machines.delivery.causes import DIED, FOLLOWS
from dssd.machines.delivery.entry_order import EntryOrder
from dssd.machines.delivery.events import (
    ChunkRead,
    Closing,
    Deliver,
    DeliveryEffect,
    DeliveryInput,
    EntriesRead,
    Entry,
    Installed,
    LaneOpened,
    Move,
    Moved,
    MovePiece,
    Nak,
    OpenLane,
    Read,
    Report,
    Settle,
    TakeBack,
    Ticked,
)
from dssd.machines.delivery.window import DeliveryWindow
from dssd.machines.fate import NO_FATE
from dssd.machines.messages import GrantedStream, StreamReport
from dssd.machines.queues import QueueState, Redrive, RetryPolicy, lent_anew, merged_queues
from support.played_window import Stream, cut, offsets

GRANT = 4
STREAMS = StreamId(1, 0), StreamId(2, 0), StreamId(3, 0)
"""By level."""
POLICY = RetryPolicy(3, (1_000, 5_000), 1_000, 1 << 30)
ACK_WAIT_MS = 30_000


class Kept(NamedTuple):
    """An entry, and the record of the stream that it stands for."""

    entry: Entry
    origin: int
    cause: str
    error: str


class PlayedLane:
    """A stream of some records, its queues, and their present holder.

    Queues outlive the holder, and so do its reports that were `saved`. Moves are answered at once,
    unless they are held: then the queues have the entries, but the holder does not know.
    """

    def __init__(
        self, records: int, policy: RetryPolicy = POLICY, keys: Sequence[int] = ()
    ) -> None:
        self.main = Stream([1] * records)
        self.records = records
        self.keys = keys
        """The keys of the stream's records, if its group is ordered."""
        self.policy = policy
        self.queues: dict[int, list[Kept]] = {RETRY: [], DEAD: []}
        self.now_ms = 0
        self.epoch = 0
        self.saved = StreamReport(
            STREAMS[MAIN],
            0,
            Progress(0),
            0,
            queues=(QueueState(STREAMS[RETRY]), QueueState(STREAMS[DEAD])),
        )
        self.reports: list[StreamReport] = []
        """Reports that were made, but not saved."""
        self.refuses = False
        """Whether appends fail."""
        self.holds = False
        """Whether moves are appended without an answer."""
        self.answers: list[Moved] = []
        self.moves: list[Move] = []
        self.others: list[DeliveryEffect] = []
        self.out: dict[tuple[int, int], int] = {}
        """Records that the client has, by level and offset: as which attempt."""
        self.window: DeliveryWindow
        self.lend()

    def lend(self) -> None:
        """Lend it to a new holder; reports that the last one had not saved are lost."""
        self.epoch += 1
        self._has_told = False
        """Whether the client has reported how far it came in the stream."""
        self.reports.clear()
        self.answers.clear()
        self.out.clear()
        saved = self.saved
        granted = GrantedStream(
            saved.stream,
            self.epoch,
            saved.progress,
            saved.frontier,
            saved.attempts,
            self.records,
            saved.fate or NO_FATE,
            queues=lent_anew(saved.queues),
        )
        self.window = DeliveryWindow(cut, credit_records=1_000, credit_bytes=1 << 20)
        self.feed(Installed(GRANT, 1, granted, ACK_WAIT_MS, policy=self.policy))

    def save(self) -> None:
        """Make the reports durable."""
        for report in self.reports:
            progress = self.saved.progress.merged(report.progress)
            self.saved = replace(
                report,
                progress=progress,
                fate=self.saved.fate.merged(report.fate, progress),
                queues=merged_queues(self.saved.queues, report.queues),
            )
        self.reports.clear()

    def die(self) -> None:
        """The client vanishes; its session reports what it knows."""
        self.feed(Closing())
        self.save()
        self.lend()

    def redrive(self, start: int, end: int, over_ms: int = 1, *, whole_keys: bool = False) -> None:
        """An operation redrives dead letters, and the lane is lent to a new holder."""
        retry, dead = self.saved.queues
        dead = replace(dead, redrive=Redrive(7, ((start, end),), over_ms, whole_keys))
        self.saved = replace(self.saved, queues=(retry, dead))
        self.lend()

    def errand(self, what: str, *entries: int, number: int = 7) -> None:
        """An operation applies an errand to saved entries of the retry queue, and the lane is lent
        to a new holder."""
        retry, dead = self.saved.queues
        retry = retry.take_errand(number, what, _ranges(entries))
        self.saved = replace(self.saved, queues=(retry, dead))
        self.lend()

    def feed(self, *inputs: DeliveryInput) -> None:
        """Give inputs, and carry out the window's requests."""
        todo = list(inputs)
        while todo:
            for effect in self.window.step(todo.pop(0), self.now_ms):
                match effect:
                    case Read():
                        todo.append(self._read(effect))
                    case Deliver():
                        self._take(effect)
                    case Report(reports):
                        self.reports += [report for _, report in reports]
                    case TakeBack(grant, ranges):
                        self.others.append(effect)
                        for at in (at for span in ranges for at in range(*span)):
                            self.out.pop((grant - GRANT, at), None)
                    case OpenLane():
                        todo += self._opened(effect)
                    case Move():
                        self.moves.append(effect)
                        self.answers.append(self._moved(effect))
                        todo += [] if self.holds else self._answered()
                    case _:
                        self.others.append(effect)

    def answer(self) -> None:
        """Answer the moves that were held."""
        self.feed(*self._answered())

    def _answered(self) -> list[Moved]:
        answers, self.answers = self.answers, []
        return answers

    def _read(self, asked: Read) -> ChunkRead:
        level = asked.grant - GRANT
        chunk = self._level(level).read(asked)
        if level == MAIN and self.keys:
            return chunk._replace(keys=self.keys[chunk.base : chunk.base + chunk.records])
        return chunk

    def _level(self, level: int) -> Stream:
        return self.main if level == MAIN else Stream([1] * len(self.queues[level]))

    def _take(self, delivery: Deliver) -> None:
        for start, end in offsets(delivery):
            for at in range(start, end):
                assert (delivery.grant - GRANT, at) not in self.out
                self.out[delivery.grant - GRANT, at] = delivery.attempt

    def _opened(self, asked: OpenLane) -> list[DeliveryInput]:
        answers: list[DeliveryInput] = []
        starts = {RETRY: asked.retry_from, DEAD: asked.dead_from}
        spans = [(start, len(self.queues[level])) for level, start in starts.items()]
        order = EntryOrder(spans[0], spans[1], asked.dead_known)
        while (wanted := order.to_read()) is not None:
            level, at = wanted
            entries = [kept.entry for kept in self.queues[level][at : at + 2]]
            for told in order.take(level, entries, at + len(entries)):
                end = told.entries[-1].offset + 1
                answers.append(EntriesRead(asked.grant, told.level, tuple(told.entries), end))
        return [*answers, LaneOpened(asked.grant, dead_size=10)]

    def _moved(self, asked: Move) -> Moved:
        if self.refuses:
            return Moved(asked.grant, failed=asked.pieces)
        made = [
            (piece.to, self._append(piece, at))
            for piece in asked.pieces
            for at in range(piece.start, piece.end)
        ]
        return Moved(asked.grant, tuple(sorted(made, key=lambda each: (each[0], each[1].offset))))

    def _append(self, piece: MovePiece, at: int) -> Entry:
        source = None if piece.level == MAIN else self.queues[piece.level][at]
        origin = at if source is None else source.origin
        due_ms, attempt = piece.due_ms, piece.attempt
        if piece.is_copied:
            assert source is not None
            due_ms, attempt = source.entry.due_ms, source.entry.attempt
        if piece.cause == FOLLOWS and source is not None:
            attempt = source.entry.attempt
        queue = self.queues[piece.to]
        key = self.keys[origin] if self.keys else 0
        is_suspect = bool(self.keys) and piece.cause == DIED
        operation = piece.operation or (0 if source is None else source.entry.operation)
        entry = Entry(
            len(queue),
            due_ms,
            attempt,
            piece.level,
            at,
            10,
            origin,
            key,
            is_suspect,
            operation=operation,
        )
        queue.append(Kept(entry, origin, piece.cause, piece.error))
        return entry

    # The client

    def settle(
        self,
        level: int,
        *,
        acked: Sequence[int] = (),
        naks: Sequence[Nak] = (),
        handed_out: Sequence[int] = (),
    ) -> None:
        """The client reports its hand-outs on a level; for the retry queue it names each."""
        for at in acked:
            self.out.pop((level, at), None)
        for nak in naks:
            for at in range(nak.start, nak.end):
                self.out.pop((level, at), None)
        told = [*handed_out, *acked, *(at for nak in naks for at in range(nak.start, nak.end))]
        frontier = self.records if level == MAIN else 0
        # A record that is delivered alone lies below the frontier that was reported before, so it
        # is named.
        named = _ranges(told) if level == RETRY or self._has_told else ()
        self._has_told = self._has_told or level == MAIN
        self.feed(
            Settle(GRANT + level, _ranges(acked), tuple(naks), frontier, handed_out=named),
        )

    def ack(self, level: int, *at: int) -> None:
        """Acknowledge these."""
        self.settle(level, acked=at)

    def nak(self, level: int, at: int, **how: object) -> None:
        """Refuse these."""
        self.settle(level, naks=[Nak(at, at + 1, **how)])  # type: ignore[arg-type]

    def tick(self, by_ms: int) -> None:
        """Let time pass, with a tick wherever the window wants one."""
        until_ms = self.now_ms + by_ms
        while self.window.wake_at_ms is not None and self.window.wake_at_ms <= until_ms:
            self.now_ms = max(self.now_ms, self.window.wake_at_ms)
            self.feed(Ticked())
        self.now_ms = until_ms

    # What is where

    def states(self) -> tuple[Progress, QueueState, QueueState]:
        """The state of each level, as the holder has it."""
        (stream, *_) = [each for each in self.window.streams() if each.level == MAIN]
        report = stream.report()
        return report.progress, *report.queues  # type: ignore[return-value]

    def places(self) -> list[list[int]]:
        """For each record, the levels on which it waits."""
        main, *queues = self.states()
        places = [[] if main.is_acked(at) else [MAIN] for at in range(self.records)]
        for level, queue in zip((RETRY, DEAD), queues, strict=True):
            for kept in self.queues[level]:
                if not queue.progress.is_acked(kept.entry.offset):
                    places[kept.origin].append(level)
        return places


def _ranges(at: Sequence[int]) -> Ranges:
    return normalised((each, each + 1) for each in at)

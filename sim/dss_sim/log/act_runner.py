"""Does the acts of a run on a log and its catalogue, and tells every fact.

Invariant: a request is told before it is made, an answer right after it came; an answer that no
rule allows is a violation. An act's topic, stream or producer is chosen among those that exist.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from dss_core.errors import (
    DiskFull,
    DssError,
    GrowthOfNoUse,
    Overloaded,
    ProducerForgotten,
    SequenceGap,
    SequenceTooOld,
    StorageTopicSealed,
    StreamNotFound,
    TopicNotFound,
)
from dss_core.ids import StreamId
from dss_core.limits import PRODUCER_WINDOW_SEQUENCES
from dss_core.producer_ids import NO_PRODUCER
from dss_core.progress import Range
from dss_sim.log.acts import (
    Act,
    Adopt,
    Grow,
    MakeTopic,
    Probe,
    ReadBack,
    RemoveTopic,
    Repeat,
    Retain,
    Roll,
    Seal,
    Send,
    Sending,
    Together,
    Trim,
    Wait,
)
from dss_sim.log.journal import JournaledStore
from dss_sim.log.ledger import (
    ANONYMOUS,
    FORGOTTEN,
    GONE,
    PRODUCERS,
    EndSeen,
    Frame,
    FrameRefused,
    FrameSent,
    FrameStored,
    Place,
    SealAsked,
    Sealed,
    SentTogether,
)
from dss_sim.log.new_frame import append_of, id_in, id_of, new_frame
from dss_sim.log.power_cycle import PowerCycle
from dss_sim.log.retention_rules import files_of, left_wrongly, taken_wrongly
from dss_sim.log.rules import TOPIC_EPOCH, name_of, stamped_at
from dss_sim.log.stream_contents import frames_of
from dss_sim.ordering_keys import OrderingKeys, keys_of_stream
from dss_sim.power_loss.promises import (
    RemovalAsked,
    TopicAsked,
    TopicMade,
    TopicRemoved,
    TrimAsked,
    Trimmed,
)
from dssd.log.port import Appended, Publication
from dssd.log.segment_log import SegmentLog
from dssd.store.port import PreconditionFailed, Put, VersionIs
from dssd.store.rows import BanRow, StorageTopicRow
from dssd.topics.catalogue import Catalogue, NewTopic, Topic

NO_ROOM = (DiskFull, Overloaded)
PROBED_BACK = 7
"""How many frames of a producer are sent again: more than the log remembers answers for."""


class ActRunner:
    """Does the acts of one life."""

    def __init__(
        self,
        cycle: PowerCycle,
        log: SegmentLog,
        catalogue: Catalogue,
        store: JournaledStore,
        keys: OrderingKeys,
        is_full: Callable[[], bool],
        broken: Callable[[str, str], None],
    ) -> None:
        self._cycle = cycle
        self._log = log
        self._catalogue = catalogue
        self._store = store
        self._keys = keys
        self._is_full = is_full
        """Whether any call found the disk full in this life."""
        self._broken = broken
        """Called with a rule that does not hold, and why."""

    async def do(self, act: Act, name: str) -> None:
        """Do one act; it returns once the act was answered."""
        match act:
            case MakeTopic():
                await self._allowed(self._make(name, act))
            case Wait(seconds):
                await asyncio.sleep(seconds)
            case Send(sendings):
                await self._send([self._frames(sending) for sending in sendings])
            case Probe():
                await self._probe()
            case Together(acts):
                async with asyncio.TaskGroup() as tasks:
                    for at, one in enumerate(acts):
                        tasks.create_task(self.do(one, f"{name}.{at}"), name=f"act {name}.{at}")
            case _:
                topic = self._topic(act)
                if topic is not None:
                    await self._allowed(self._do_to(topic, act, is_alone="." not in name))

    async def _do_to(self, topic: Topic, act: Act, *, is_alone: bool) -> None:
        number = topic.producing.storage_topic_id
        match act:
            case RemoveTopic():
                self._cycle.tell(RemovalAsked(topic.name))
                await self._catalogue.remove(topic.name)
                self._cycle.tell(TopicRemoved(topic.name))
            case Adopt():
                await self._adopt(topic, act)
            case Roll():
                await self._log.roll(number)
            case Seal():
                await self._seal(topic)
            case Grow():
                await self._grow(topic, act.partitions)
            case Trim():
                await self._trim(_stream_of(topic, act.partition), act.share)
            case Retain():
                await self._retain(number, act, is_alone=is_alone)
            case ReadBack():
                await self._read(_stream_of(topic, act.partition), act)
            case Repeat():
                await self._repeat(_stream_of(topic, act.partition), act)

    async def _allowed(self, call: Awaitable[None]) -> None:
        """Do it; it may be refused if the disk is full, or if another act removed what it needs."""
        try:
            await call
        except NO_ROOM as refused:
            if not self._is_full():
                self._broken("answers", f"there is room, and yet: {refused!r}")
        except (StreamNotFound, TopicNotFound) as refused:
            if not self._cycle.ledger.maybe and not self._cycle.ledger.removals:
                self._broken("answers", f"nothing was removed, and yet: {refused!r}")

    def _topic(self, act: Act | Sending) -> Topic | None:
        topics = self._catalogue.topics()
        number = getattr(act, "topic", None)
        return topics[number % len(topics)] if topics and number is not None else None

    # Topics

    async def _make(self, name: str, act: MakeTopic) -> None:
        self._cycle.tell(TopicAsked(name))
        new = NewTopic(name, act.partitions, durability=act.durability)
        topic = await self._catalogue.create(new)
        number = topic.producing.storage_topic_id
        self._cycle.tell(TopicMade(name, topic.topic_id, number, act.partitions, act.durability))

    async def _seal(self, topic: Topic) -> None:
        part = topic.producing
        if part.storage_topic_id in self._cycle.ledger.sealing:
            return
        self._cycle.tell(SealAsked(part.storage_topic_id))
        async with self._log.sealing(part.storage_topic_id) as ends:
            for stream, end in zip(part.streams(), ends.offsets, strict=True):
                self._cycle.tell(EndSeen(stream, end))
            if not await self._sealed(topic, ",".join(map(str, ends.offsets))):
                return
        self._cycle.tell(Sealed(part.storage_topic_id))

    async def _grow(self, topic: Topic, partitions: int) -> None:
        """Add a storage topic, unless one from before a death still waits, and switch to it.

        Another act may do the same at the same time, or seal it without a successor.
        """
        part = topic.producing
        if part.storage_topic_id in self._cycle.ledger.sealing:
            return
        self._cycle.tell(SealAsked(part.storage_topic_id))
        if not topic.waiting:
            with suppress(GrowthOfNoUse):
                await self._catalogue.add_storage_topic(
                    topic.topic_id, part.ordinal + 1, partitions
                )
        if self._catalogue.get(topic.name).waiting:
            await self._catalogue.switch(topic.topic_id, part.ordinal + 1)
            self._cycle.tell(Sealed(part.storage_topic_id))

    async def _sealed(self, topic: Topic, written: str) -> bool:
        """Note where it ends; False if it was removed meanwhile."""
        key = (topic.topic_id, topic.producing.ordinal)
        while True:
            found = await self._store.read(StorageTopicRow, key)
            if found is None:
                return False
            try:
                await self._store.commit(
                    [Put(replace(found.row, ends=written))],
                    [VersionIs(StorageTopicRow, key, found.version)],
                )
            except PreconditionFailed:
                continue
            return True

    # Making it shorter

    async def _trim(self, stream: StreamId, share: float) -> None:
        bounds = self._log.bounds(stream)
        offset = bounds.start + round(share * (bounds.end - bounds.start))
        self._cycle.tell(TrimAsked(*stream, offset))
        await self._log.trim(stream, offset)
        self._cycle.tell(Trimmed(*stream, offset))

    async def _retain(self, storage_topic_id: int, act: Retain, *, is_alone: bool) -> None:
        going: dict[StreamId, Range] = {}

        async def about_to_go(ranges: Mapping[StreamId, Range]) -> None:
            going.update(ranges)
            for stream, (_, end) in ranges.items():
                self._cycle.tell(TrimAsked(*stream, end))

        now_us = self._cycle.clock()
        before = files_of(self._cycle.root, storage_topic_id)
        await self._log.enforce_retention(
            storage_topic_id, act.age_ms, act.bytes, now_us, about_to_go
        )
        for stream, (_, end) in going.items():
            self._cycle.tell(Trimmed(*stream, end))
        # A full disk postpones retention; a flipped bit makes one file look like another.
        if is_alone and not self._is_full() and not self._cycle.ledger.rotten:
            after = files_of(self._cycle.root, storage_topic_id)
            oldest_us = now_us - (act.age_ms or 0) * 1_000
            is_sealed = storage_topic_id in self._cycle.ledger.sealing
            for text in (
                *taken_wrongly(before, after, act, oldest_us),
                *left_wrongly(before, after, act, oldest_us, is_sealed=is_sealed),
            ):
                self._broken("retained", text)

    # Reading

    async def _read(self, stream: StreamId, act: ReadBack) -> None:
        bounds = self._log.bounds(stream)
        offset = bounds.start + int(act.share * (bounds.end - bounds.start))
        chunk = await self._log.read(stream, offset, bytes_max=act.bytes_max)
        bodies = {frame.body: frame for frame in self._cycle.ledger.frames.values()}
        for found in frames_of(chunk):
            frame = bodies.get(found.body)
            if frame is None or found.content != stamped_at(frame, found.base, found.time_us):
                self._broken("whole", f"{name_of(stream)}: nobody sent what was read: {found}")
                return
            if found.keys != frame.keys:
                self._broken("keys", f"{frame} was sent with {frame.keys}, not {found.keys}")
            self._note_stored(frame, Place(found.base, found.time_us))

    def _note_stored(self, frame: Frame, place: Place) -> None:
        """Note that a frame lies at a place, which must be the known one if there is one."""
        ledger = self._cycle.ledger
        known = ledger.places.get(frame.number)
        if known not in (None, place) and not ledger.may_be_forgotten(frame):
            self._broken("repeats", f"{frame} is at {place.base}, and was at {known}")
        before_us = self._last_before_us(frame.stream)
        if place.time_us < before_us:
            self._broken("times", f"{frame} is of {place.time_us}, and before was {before_us}")
        self._cycle.tell(FrameStored(frame.number, place))

    def _last_before_us(self, stream: StreamId) -> int:
        """The newest append time in older storage topics of the topic of a stream.

        A storage topic that waits for its switch gets its first append time then, so it tells
        nothing yet.
        """
        ledger, topics = self._cycle.ledger, self._catalogue.topics()
        older = {
            part.storage_topic_id
            for topic in topics
            for at, own in enumerate(topic.storage_topics)
            if own.storage_topic_id == stream.storage_topic_id and own not in topic.waiting
            for part in topic.storage_topics[:at]
        }
        if not older or ledger.rotten:
            return 0
        times = (
            place.time_us
            for number, place in ledger.places.items()
            if ledger.frames[number].stream.storage_topic_id in older
            and number not in ledger.at_risk
        )
        return max(times, default=0)

    # Appending

    def _frames(self, sending: Sending) -> list[Frame]:
        """The frames that a producer sends, unanswered ones first."""
        topic = self._topic(sending)
        if topic is None:
            return []
        return self._frames_to(_stream_of(topic, sending.partition), sending)

    def _frames_to(self, stream: StreamId, sending: Sending) -> list[Frame]:
        """Frames to a stream. A producer never has more in flight than the log remembers answers
        for."""
        ledger = self._cycle.ledger
        producer = ledger.current(stream, sending.producer)
        sending = replace(sending, producer=producer)
        frames = [] if producer == ANONYMOUS else ledger.unanswered(stream, producer)
        if len(frames) < PRODUCER_WINDOW_SEQUENCES:
            number = len(ledger.frames)
            sequence = ledger.next_sequence(stream, producer)
            topic = self._catalogue.topic_of(stream)
            of_stream = keys_of_stream(stream.partition, topic.producing.partitions)
            keys = self._keys.of_frame(of_stream, number, sending.records)
            named = self._id_of(stream, producer)
            frames.append(
                new_frame(number, stream, sequence, sending, keys, named, topic.durability)
            )
        for frame in frames:
            self._cycle.tell(FrameSent(frame))
        return frames

    def _id_of(self, stream: StreamId, producer: int) -> bytes:
        sent = self._cycle.ledger.sent.get((stream, producer))
        if sent:
            return id_in(self._cycle.ledger.frames[sent[0]])
        return id_of(producer, self._log.producers_begin_us(stream.storage_topic_id))

    async def _repeat(self, stream: StreamId, act: Repeat) -> None:
        ledger = self._cycle.ledger
        stored = ledger.stored(stream, ledger.current(stream, act.producer))
        if act.back < len(stored):
            await self._resend([stored[-1 - act.back]])

    async def _resend(self, frames: list[Frame]) -> None:
        """Send frames again that are stored already; their answers are known, or too old."""
        results = await self._log.append([append_of(frame) for frame in frames])
        for frame, result in zip(frames, results, strict=True):
            if isinstance(result, Appended):
                self._answered(frame, result)
            elif not self._may_be_refused(frame, result):
                self._broken("repeats", f"{frame}, sent again: {result!r}")
            elif isinstance(result, StorageTopicSealed):
                self._cycle.tell(FrameRefused(frame.number, GONE))

    def _may_be_refused(self, frame: Frame, error: BaseException) -> bool:
        """Whether a frame that is sent again may be refused."""
        ledger = self._cycle.ledger
        match error:
            case SequenceTooOld():
                allowed = not ledger.is_answer_known(frame)
            case ProducerForgotten():
                allowed = frame.number in ledger.lapsed
            case StreamNotFound():
                allowed = True
            case StorageTopicSealed():
                # The power took the frame, and nothing new is stored there any more.
                is_sealed = frame.stream.storage_topic_id in ledger.sealing
                allowed = is_sealed and frame.number in ledger.at_risk
            case _:
                allowed = self._is_full() and isinstance(error, NO_ROOM)
        return allowed or bool(ledger.rotten)

    async def _probe(self) -> None:
        """Send repeats first, because new frames move the window on."""
        streams = [stream for topic in self._catalogue.topics() for stream in topic.streams()]
        for stream in streams:
            for producer in range(PRODUCERS):
                ledger = self._cycle.ledger
                stored = ledger.stored(stream, ledger.current(stream, producer))
                for frame in stored[-PROBED_BACK:]:
                    await self._resend([frame])
        for number, stream in enumerate(streams):
            one = Sending(0, stream.partition, number % PRODUCERS, 1, 5)
            await self._send([self._frames_to(stream, one)])

    async def _send(self, sent: list[list[Frame]]) -> None:
        frames = [frame for own in sent for frame in own]
        if not frames:
            return
        sealed = frozenset(self._cycle.ledger.sealed)
        results = await self._log.append([append_of(frame) for frame in frames])
        for frame, result in zip(frames, results, strict=True):
            if isinstance(result, Appended):
                if not result.repeated and frame.stream.storage_topic_id in sealed:
                    self._broken("answers", f"{frame} was stored, though its topic is sealed")
                self._answered(frame, result)
            else:
                self._refused(frame, result)

    def _answered(self, frame: Frame, result: Appended) -> None:
        ledger = self._cycle.ledger
        if result.repeated and ledger.refused.get(frame.number) == GONE:
            self._broken("repeats", f"{frame} is answered as stored, though {GONE}")
        if result.records != frame.records:
            self._broken("repeats", f"{frame} is answered with {result.records} records")
        self._note_stored(frame, Place(result.base_offset, result.append_time_us))

    def _refused(self, frame: Frame, error: BaseException) -> None:
        ledger = self._cycle.ledger
        why = f"it was refused: {type(error).__name__}"
        match error:
            case ProducerForgotten():
                # Another producer may have been forgotten in its place, if this one began before.
                allowed, why = bool(ledger.lapsed or ledger.rotten), FORGOTTEN
            case DiskFull() | Overloaded():
                allowed = self._is_full()
            case SequenceGap():
                allowed = bool(ledger.rotten) or self._is_one_before_missing(frame)
            case SequenceTooOld():
                # Nobody knows whether the frame is there.
                if ledger.rotten or ledger.is_overtaken(frame):
                    return
                allowed = False
            case StorageTopicSealed():
                allowed = frame.stream.storage_topic_id in ledger.sealing
            case StreamNotFound():
                allowed = bool(ledger.maybe or ledger.removals)
            case _:
                allowed = False
        if not allowed:
            self._broken("answers", f"{frame} was refused: {error!r}")
        self._cycle.tell(FrameRefused(frame.number, why))

    async def _adopt(self, topic: Topic, act: Adopt) -> None:
        """Adopt frames all at once; they are durable, whatever their topic promises."""
        ledger, frames = self._cycle.ledger, list[Frame]()
        for sending in act.sendings:
            stream = _stream_of(topic, sending.partition)
            number = len(ledger.frames)
            of_stream = keys_of_stream(stream.partition, topic.producing.partitions)
            keys = self._keys.of_frame(of_stream, number, sending.records)
            frames.append(new_frame(number, stream, 0, sending, keys, NO_PRODUCER))
            self._cycle.tell(FrameSent(frames[-1]))
        self._cycle.tell(SentTogether(tuple(frame.number for frame in frames)))
        try:
            adopted = await self._log.adopt(
                topic.producing.storage_topic_id,
                lambda: [[frame.content for frame in frames]],
                topic_epoch=TOPIC_EPOCH,
                publish=lambda _: Publication([Put(published(frames[0].number))]),
            )
        except DssError as refused:
            for frame in frames:
                self._refused(frame, refused)
            return
        bases = {partition: start for partition, (start, _) in adopted.ranges.items()}
        for frame in frames:
            base = bases[frame.stream.partition]
            self._note_stored(frame, Place(base, adopted.append_time_us))
            bases[frame.stream.partition] += frame.records

    def _is_one_before_missing(self, frame: Frame) -> bool:
        ledger = self._cycle.ledger
        sent = ledger.sent[frame.stream, frame.producer]
        before = sent[: sent.index(frame.number)]
        return any(number not in ledger.places for number in before)


def published(number: int) -> BanRow:
    """The row that is committed with adopted frames; the number is that of the first frame."""
    return BanRow(number, "adopted", 0, 0)


def _stream_of(topic: Topic, partition: int) -> StreamId:
    streams = topic.producing.streams()
    return streams[partition % len(streams)]

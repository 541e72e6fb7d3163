"""The checks of a frame before the daemon hands it to the log.

There is one `Gate` per topic; a topic that changes gets a new gate. This is the hottest path of the
daemon, so a subject table that repeats from frame to frame is checked once.

Invariant: a frame that passed is whole, belongs to the stream that it names, and holds only
subjects that its topic owns.
"""

from typing import NamedTuple

from dss_core import frame as frames
from dss_core import frame_routing
from dss_core.errors import (
    DssError,
    ProducerForgotten,
    StaleTopicEpoch,
    StorageTopicSealed,
    StreamNotFound,
    SubjectOutsideTopic,
)
from dss_core.frame import Header, Verified
from dss_core.ids import StreamId, StreamName
from dssd.limits import HASH_KEYS_ONE_FRAME_IN, SUBJECT_TABLES_CACHED_MAX
from dssd.log.port import Append
from dssd.log.producer_room import NOBODY
from dssd.loop_yield import LoopTurn
from dssd.rpc.producer_fencing import ProducerFencing
from dssd.subject_verdicts import SubjectVerdicts
from dssd.topics.catalogue import Catalogue, Topic

SUBJECT_MATCHES_PER_STEP = 4_096
"""Subjects of a frame times patterns of its topic that are matched in one go: 1 ms. For more the
check gives way to others."""

HASHED_KEYS_PER_STEP = 8_192
"""Keys of a frame that are hashed in one go: half a millisecond. For more the check gives way."""


_Verdict = tuple[type[DssError], dict[str, str]] | None
"""The class and fields of a condition: a raised condition would keep the frame alive."""
_ACCEPTED = None


class Large(NamedTuple):
    """A frame with so many subjects or keys that it must be examined in steps."""

    verified: Verified
    hash_keys: bool


class Examined(NamedTuple):
    """What `Gate.examine` found, for `Gate.admit` of the same frame."""

    gate: "Gate"
    verdict: _Verdict


class Gate:
    """Checks the frames of one topic as it stands."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        storage = topic.producing
        self.ordinal = storage.ordinal
        self._partitions = storage.partitions
        self._factor = storage.factor
        self._streams = tuple(
            StreamId(storage.storage_topic_id, partition) for partition in range(self._partitions)
        )
        self._patterns_text = ", ".join(pattern.text for pattern in topic.patterns)
        self._verdicts: SubjectVerdicts[bytes, _Verdict] = SubjectVerdicts(
            SUBJECT_TABLES_CACHED_MAX
        )
        self._frames = 0

    def admit(
        self,
        frame: bytes,
        topic_epoch: int,
        owner: int = NOBODY,
        examined: Examined | None = None,
    ) -> tuple[Header, Append] | Large:
        """Check a frame that was routed by the topic as it was at the epoch.

        The log answers a frame of another epoch if it was stored before; otherwise it is refused.
        A frame that would block the event loop for too long is returned, to be examined in steps. A
        result of another gate, from before the topic changed, does not count.

        Raises:
            FrameCorrupt, FrameTooLarge, RecordTooLarge: the frame is broken or over a limit.
            HeaderReserved: a record has a header that no producer may set.
            StaleTopicEpoch, StreamNotFound, FrameMisrouted: it was routed by another description.
            SubjectOutsideTopic: the topic does not own the subject of a record.
        """
        verified = frames.examine(frame)
        header, topic = verified.header, self.topic
        if topic_epoch != topic.topic_epoch:
            return header, self._repeat(header, frame, topic_epoch)
        if header.partition >= self._partitions:
            raise StreamNotFound(stream=StreamName(topic.name, self.ordinal, header.partition))
        hash_keys = self._check(verified, examined)
        if isinstance(hash_keys, Large):
            return hash_keys
        frame_routing.verify_routing(
            verified, topic.router, self._partitions, self._factor, hash_keys=hash_keys
        )
        stream = self._streams[header.partition]
        return header, Append(stream, frame, topic.topic_epoch, topic.durability, owner=owner)

    def _repeat(self, header: Header, frame: bytes, topic_epoch: int) -> Append:
        """The append that asks the log whether a frame of another epoch was stored."""
        part = self.topic.produced_at(topic_epoch)
        first = self.topic.storage_topics[0]
        if part is None and first.ordinal and topic_epoch < first.storage_topic_id:
            # It may be stored in a storage topic that was removed.
            raise ProducerForgotten(stream=f"{self.topic.name}/?/{header.partition}")
        if part is None or header.partition >= part.partitions:
            raise self._stale(topic_epoch)
        stream = StreamId(part.storage_topic_id, header.partition)
        return Append(stream, frame, topic_epoch, self.topic.durability, repeats_only=True)

    def _stale(self, topic_epoch: int) -> StaleTopicEpoch:
        topic = self.topic
        return StaleTopicEpoch(topic=topic.name, current=topic.topic_epoch, given=topic_epoch)

    def ordinal_at(self, topic_epoch: int) -> int:
        """Where the frames that were let through at an epoch lie."""
        if topic_epoch == self.topic.topic_epoch:
            return self.ordinal
        part = self.topic.produced_at(topic_epoch)
        assert part is not None, "only a gate lets frames through"
        return part.ordinal

    def refusal(self, error: DssError, partition: int, topic_epoch: int) -> DssError:
        """A condition of the log about a frame that was let through at an epoch."""
        is_stale = topic_epoch != self.topic.topic_epoch
        if is_stale and isinstance(error, StorageTopicSealed):
            return self._stale(topic_epoch)
        if is_stale and isinstance(error, StreamNotFound):
            # The storage topic was removed since this gate admitted the frame, and may have held
            # it.
            stream = StreamName(self.topic.name, self.ordinal_at(topic_epoch), partition)
            return ProducerForgotten(stream=stream)
        return self.named(error, partition)

    async def examine(self, frame: Large) -> Examined:
        """Check a frame in steps, giving way to other tasks."""
        verdict: _Verdict = _ACCEPTED
        verified, hash_keys = frame
        turn = LoopTurn()
        try:
            for subject in verified.subjects:
                await turn.give_way()
                self.check_subject(subject)
            if hash_keys:
                for _ in frame_routing.hash_checks(verified, HASHED_KEYS_PER_STEP):
                    await turn.give_way()
        except DssError as error:
            verdict = type(error), error.fields
        return Examined(self, verdict)

    def check_subject(self, subject: str) -> None:
        """Check that the topic owns a legal subject.

        Raises:
            SubjectOutsideTopic: it does not.
        """
        patterns = self.topic.patterns
        if not any(pattern.matches(subject) for pattern in patterns):
            raise SubjectOutsideTopic(
                subject=subject,
                topic=self.topic.name,
                patterns=self._patterns_text,
            )

    def named(self, error: DssError, partition: int) -> DssError:
        """A condition of the log, which knows only ids, with the names of topic and stream."""
        names: dict[str, object] = {
            "stream": StreamName(self.topic.name, self.ordinal, partition),
            "topic": self.topic.name,
            "ordinal": self.ordinal,
        }
        known = {name: value for name, value in names.items() if name in error.fields}
        return type(error)(**{**error.fields, **known})

    def _check(self, verified: Verified, examined: Examined | None) -> bool | Large:
        """Check the subjects; returns whether the hashes of the keys are still to be checked."""
        if examined is not None and examined.gate is self:
            _raise(examined.verdict)
            return False
        self._frames += 1
        hash_keys = self._frames % HASH_KEYS_ONE_FRAME_IN == 0
        verdict = self._verdict(verified)
        if isinstance(verdict, Large):
            return verdict._replace(hash_keys=hash_keys)
        _raise(verdict)
        if hash_keys and verified.header.records > HASHED_KEYS_PER_STEP:
            return Large(verified, hash_keys)
        return hash_keys

    def _verdict(self, verified: Verified) -> "_Verdict | Large":
        table, subjects = verified.subject_table, verified.subjects
        try:
            return self._verdicts[table]
        except KeyError:
            pass
        if len(subjects) * len(self.topic.patterns) > SUBJECT_MATCHES_PER_STEP:
            return Large(verified, hash_keys=False)
        verdict = _ACCEPTED
        try:
            for subject in subjects:
                self.check_subject(subject)
        except DssError as error:
            verdict = type(error), error.fields
        self._verdicts.keep(table, table, verdict)
        return verdict


def _raise(verdict: _Verdict) -> None:
    if verdict is not _ACCEPTED:
        condition, fields = verdict
        raise condition(**fields)


class Gates:
    """The gates of all topics, made at first use and dropped when their topic changes."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.fencing = ProducerFencing()
        """The newest call of each producer, shared by all gates."""
        self._catalogue = catalogue
        self._gates: dict[str, Gate] = {}
        catalogue.watch(self._changed)

    def of(self, name: str) -> Gate:
        """The gate of a topic.

        Raises:
            TopicNotFound: there is none of that name.
        """
        gate = self._gates.get(name)
        if gate is None:
            gate = self._gates[name] = Gate(self._catalogue.get(name))
        return gate

    def _changed(self, topic: Topic, removed: bool) -> None:
        self._gates.pop(topic.name, None)

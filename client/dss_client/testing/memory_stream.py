"""One stream of a daemon in memory: its frames, its producers, and how far consumers are.

Invariant: offsets rise by one a record; a frame that was stored is not stored again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from dss_core import frame as frames
from dss_core.decode import decode
from dss_core.errors import SequenceGap, StorageTopicSealed, SubjectOutsideTopic
from dss_core.filters import TopicFilter
from dss_core.progress import Progress, Ranges, normalised

APPEND_TIME_US = 7
"""The append time of every frame: a test needs no clock."""


@dataclass
class MemoryStream:
    """One stream's stamped frames, and what consumers have acknowledged."""

    name: str = "t/0/0"
    pattern: TopicFilter = field(default_factory=lambda: TopicFilter.parse("t/#"))
    """The subjects that the topic owns."""
    end: int = 0
    """The next offset."""
    sealed: bool = False
    """It is sealed, and only answers for frames that it has."""
    frames: list[tuple[int, bytes]] = field(default_factory=list)
    """The base offset and the bytes of each frame."""
    producers: dict[bytes, dict[int, tuple[int, int]]] = field(default_factory=dict)
    """The base offset and the number of records, by producer and sequence."""
    progress: Progress = field(default_factory=lambda: Progress(0))
    frontier: int = 0
    """Every offset below it was handed to the user, as the client reported."""
    sent_end: int = 0
    """The offset after the last one that was sent to a client."""
    redelivered_below: int = 0
    """Records below it were perhaps seen before."""
    hand_outs: dict[int, int] = field(default_factory=dict)
    """By offset: how often it was handed out, as clients reported."""

    def append(self, frame: bytes) -> tuple[int, int, bool]:
        """Store a frame; returns its base offset, its records, and whether it was stored before.

        Raises:
            FrameCorrupt, FrameTooLarge, RecordTooLarge: the frame is broken or over a limit.
            SubjectOutsideTopic: the topic does not own a subject.
            StorageTopicSealed: it takes nothing more.
            SequenceGap: a frame of this producer before it is missing.
        """
        verified = frames.examine(frame)
        header = verified.header
        for subject in verified.subjects:
            if not self.pattern.matches(subject):
                raise SubjectOutsideTopic(subject=subject, topic="t", patterns=self.pattern)
        known = self.producers.setdefault(header.producer_id, {})
        if header.sequence in known:
            return (*known[header.sequence], True)
        if self.sealed:
            _, ordinal, _ = self.name.split("/")
            raise StorageTopicSealed(topic="t", ordinal=ordinal)
        if known and header.sequence != max(known) + 1:
            raise SequenceGap(given=header.sequence, expected_after=max(known), stream=self.name)
        stamp = frames.stamped(
            frame,
            base_offset=self.end,
            append_time_us=APPEND_TIME_US,
            topic_epoch=1,
            storage_topic_id=1,
        )
        known[header.sequence] = (self.end, header.records)
        self.frames.append((self.end, stamp + frame[len(stamp) :]))
        base, self.end = self.end, self.end + header.records
        return base, header.records, False

    def visible(self, matching: TopicFilter, mask: Ranges) -> Iterator[tuple[int, bytes, Ranges]]:
        """Frames with a record that matches: base offset, bytes, and masked offsets."""
        known = normalised(mask)
        for base, frame in self.frames:
            end = base + frames.read_header(frame).records
            if any(low <= base and end <= high for low, high in known):
                continue
            hidden = (
                (base + at, base + at + 1)
                for at, subject in enumerate(decode(frame).subjects)
                if not matching.matches(subject)
            )
            masked = normalised([*known, *hidden])
            if not any(low <= base and end <= high for low, high in masked):
                yield base, frame, masked

    def payloads(self) -> list[bytes]:
        """What it holds, in order."""
        joined = b"".join(frame for _, frame in self.frames)
        return list(decode(joined).payloads) if joined else []

"""Checks frames that a driver staged, exactly as frames of a producer are checked.

Invariant: a frame that passes belongs to the stream that it names, and its subjects to its topic.
It may run in a thread, so this module touches nothing that other parts change.
"""

from collections.abc import Sequence

from dss_core.errors import SubjectOutsideTopic
from dss_core.frame import Verified
from dss_core.frame_routing import verify_routing
from dss_core.frames_together import routed_together
from dss_core.staged import BadStagedFile
from dssd.limits import HASH_KEYS_ONE_FRAME_IN
from dssd.topics.model import StorageTopic, Topic


class FrameCheck:
    """Of the target of one job."""

    def __init__(self, topic: Topic, part: StorageTopic) -> None:
        self._topic = topic
        self._part = part
        self._known: set[bytes] = set()

    def __call__(self, frames: Sequence[Verified], before: int) -> None:
        """Check frames, given the number of frames before them.

        Raises:
            BadStagedFile, SubjectOutsideTopic, FrameMisrouted, FrameCorrupt: one does not pass.
        """
        for verified in frames:
            self._check_stream(verified)
        part = self._part
        routing = (self._topic.router, part.partitions, part.factor)
        routed = routed_together(frames, *routing)
        for number, verified in enumerate(frames, before):
            hash_keys = number % HASH_KEYS_ONE_FRAME_IN == 0
            if hash_keys or not routed:
                verify_routing(verified, *routing, hash_keys=hash_keys)

    def _check_stream(self, verified: Verified) -> None:
        partition, part = verified.header.partition, self._part
        if partition >= part.partitions:
            raise BadStagedFile(f"a frame is for partition {partition} of {part.partitions}")
        if verified.subject_table not in self._known:
            self._check_subjects(verified.subjects)
            self._known.add(verified.subject_table)

    def _check_subjects(self, subjects: tuple[str, ...]) -> None:
        topic = self._topic
        for subject in subjects:
            if not any(pattern.matches(subject) for pattern in topic.patterns):
                patterns = ", ".join(str(pattern) for pattern in topic.patterns)
                raise SubjectOutsideTopic(subject=subject, topic=topic.name, patterns=patterns)

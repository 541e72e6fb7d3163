"""Routes the records of a producer to partitions, by the topic's description.

Invariant: under one description a key goes to one partition only. The partitions of keys and the
checks of subjects are cached, up to a bound.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dss_client._pending_frame import PendingFrame
from dss_client.limits import RECORD_OVERHEAD_BYTES
from dss_core.errors import DssError, IllegalArgument, SubjectOutsideTopic
from dss_core.filters import TopicFilter, check_subject
from dss_core.routing import Router, key_hash, partition_of

if TYPE_CHECKING:
    from dss_client.topics import Topic
    from dss_core.columns import Columns

ROUTES_CACHED_MAX = 65_536
"""Keys whose partition a producer remembers."""

SUBJECTS_CACHED_MAX = 65_536
"""Subjects that a producer remembers as legal."""


class Routes:
    """The routing of one topic as it was described."""

    __slots__ = (
        "_factor",
        "_keyless",
        "_partitions",
        "_patterns",
        "_router",
        "_topic",
        "by_key",
        "subjects",
    )

    def __init__(self, topic: "Topic") -> None:
        self._topic = topic.name
        self._router = Router(topic.router)
        self._partitions = topic.producing.partitions
        self._factor = topic.producing.factor
        self._patterns = tuple(TopicFilter.parse(pattern) for pattern in topic.patterns)
        self._keyless = 0
        self.by_key: dict[bytes, tuple[int, int]] = {}
        """Partition and routing hash of keys seen lately."""
        self.subjects: set[str] = set()
        """Subjects seen lately, all legal."""

    def next_keyless(self) -> int:
        """The partition of the next record without a key."""
        partition = self._keyless
        self._keyless = partition + 1 if partition + 1 < self._partitions else 0
        return partition

    def learn(self, key: bytes) -> tuple[int, int]:
        """Partition and routing hash of a key, remembered in `by_key`.

        Raises:
            IllegalArgument: it is not bytes.
        """
        if not isinstance(key, bytes):
            raise IllegalArgument(argument="key", rule="it is bytes; encode text")
        if len(self.by_key) >= ROUTES_CACHED_MAX:
            self.by_key.clear()
        hashed = key_hash(key)
        route = (partition_of(self._router, hashed, self._partitions, self._factor), hashed)
        self.by_key[key] = route
        return route

    def admit(self, subject: str) -> None:
        """Check a subject and remember it.

        Raises:
            IllegalSubject: it breaks a rule of subjects.
            SubjectOutsideTopic: the topic does not own it.
        """
        check_subject(subject)
        if not any(pattern.matches(subject) for pattern in self._patterns):
            raise SubjectOutsideTopic(
                subject=subject,
                topic=self._topic,
                patterns=", ".join(pattern.text for pattern in self._patterns),
            )
        if len(self.subjects) >= SUBJECTS_CACHED_MAX:
            self.subjects.clear()
        self.subjects.add(subject)

    def admit_all(self, subjects: Iterable[str]) -> None:
        """Check a column of subjects.

        Raises:
            IllegalSubject, SubjectOutsideTopic: as `admit`.
        """
        for subject in set(subjects) - self.subjects:
            self.admit(subject)

    def frames(self, columns: "Columns") -> Iterator[tuple[int, PendingFrame]]:
        """Records as frames of their partitions.

        Raises:
            RecordTooLarge, IllegalArgument: a record breaks a rule.
        """
        from dss_core.build import partition_columns, split_columns

        parts = partition_columns(
            columns, self._router, self._partitions, self._factor, keyless_start=self._keyless
        )
        self._keyless = (self._keyless + columns.records) % self._partitions
        for partition, part in parts.items():
            for fitting in split_columns(part):
                yield partition, PendingFrame.of(fitting, _size_bytes(fitting))

    def rerouted(self, frame: PendingFrame) -> Iterator[tuple[int, PendingFrame]]:
        """A frame that was routed by another description, whole or in parts, by partition."""
        from dss_core.build import placed_columns

        frame.encoded = b""
        columns = frame.to_columns()
        try:
            parts, places = placed_columns(
                columns, self._router, self._partitions, self._factor, keyless_start=self._keyless
            )
        except DssError:
            # Building it fails by the same value, and tells its waiters.
            yield 0, frame
            return
        self._keyless = (self._keyless + columns.records) % self._partitions
        if len(parts) == 1:
            yield next(iter(parts)), frame
            return
        yield from frame.split(parts, places).items()


def _size_bytes(columns: "Columns") -> int:
    payloads = columns.payloads
    known = getattr(payloads, "nbytes", None)
    payload_bytes = known if known is not None else sum(map(len, payloads))
    return int(payload_bytes) + columns.records * RECORD_OVERHEAD_BYTES

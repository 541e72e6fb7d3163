"""The parameters of an audit: its topic as it was at creation. Plain values.

Invariant: the result of a chunk follows from its manifest alone, so the manifest has patterns and
routing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from dss_client.topics import Topic
from dss_core.errors import IllegalJob


@dataclass(frozen=True, slots=True)
class StorageShape:
    """How one storage topic is routed."""

    ordinal: int
    partitions: int
    factor: int


@dataclass(frozen=True, slots=True)
class AuditParams:
    """The parameters besides source, range and filter."""

    router: str
    patterns: tuple[str, ...]
    shapes: Mapping[int, StorageShape]
    """The storage topics."""

    @classmethod
    def of(cls, topic: Topic) -> Self:
        """The parameters for the present topic."""
        shapes = {
            each.storage_topic_id: StorageShape(each.ordinal, each.partitions, each.factor)
            for each in topic.storage_topics
        }
        return cls(topic.router, topic.patterns, shapes)

    @classmethod
    def from_json(cls, job: str, text: str) -> Self:
        """Read what `to_json` wrote for a job of this name.

        Raises:
            IllegalJob: it is something else.
        """
        try:
            fields = json.loads(text)
            shapes = {number: StorageShape(*each) for number, *each in fields["shapes"]}
            return cls(fields["router"], tuple(fields["patterns"]), shapes)
        except (ValueError, KeyError, TypeError) as wrong:
            rule = "an audit is made with AuditParams, or by dssctl audits create"
            raise IllegalJob(job=job, rule=rule) from wrong

    def to_json(self) -> str:
        """The parameters for the manifest."""
        shapes = [
            (number, each.ordinal, each.partitions, each.factor)
            for number, each in self.shapes.items()
        ]
        return json.dumps({"router": self.router, "patterns": self.patterns, "shapes": shapes})

    @property
    def partitions(self) -> Mapping[int, int]:
        """The number of partitions, by ordinal of a storage topic."""
        return {each.ordinal: each.partitions for each in self.shapes.values()}

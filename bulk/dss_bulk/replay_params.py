"""The parameters of a replay: which records it takes, and how it copies them.

Invariant: both engines read a manifest in the same way. Loads no Arrow.
"""

import json
from dataclasses import asdict, dataclass
from typing import Self

from dss_bulk.copy_rule import CopyRule
from dss_bulk.selection import RecordSelection
from dss_client.job_values import Granted
from dss_core.filters import TopicFilter


@dataclass(frozen=True, slots=True)
class ReplayParams:
    """The parameters of a replay besides source, target and range."""

    subject: str | None = None
    """A template, see `dss_bulk.copy_rule`."""
    key: str | None = None
    """Hexadecimal: only records of this key."""
    headers: tuple[tuple[str, str], ...] = ()
    """Only records with each of these headers; values as text."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; an empty text has no conditions."""
        fields = json.loads(text or "{}")
        headers = tuple((name, value) for name, value in fields.pop("headers", ()))
        return cls(headers=headers, **fields)

    def to_json(self) -> str:
        """The parameters for the manifest."""
        return json.dumps(asdict(self))


def copy_rule_of(granted: Granted, params: ReplayParams) -> CopyRule:
    """The rule for the copies of a replay."""
    assert granted.target is not None, "a replay writes to a topic"
    job = granted.job
    return CopyRule(job.source, granted.target.topic, job.name, job.hops_max, params.subject)


def selection_of(granted: Granted, params: ReplayParams) -> RecordSelection:
    """The records that a replay takes."""
    job = granted.job
    return RecordSelection(
        subject=TopicFilter.parse(job.filter) if job.filter else None,
        key=None if params.key is None else bytes.fromhex(params.key),
        headers=tuple((name, value.encode()) for name, value in params.headers),
    )

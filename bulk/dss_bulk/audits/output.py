"""The results of an audit in its manifest, written and read.

::

    chunk 0 ─ partial ┐
    chunk 1 ─ partial ┼─► last chunk: all of it, and how far its groups were
    chunk 2 ─ partial ┘

Invariant: the report follows from the manifest alone. So a replacement driver repeats nothing, no
file is left anywhere, and a report can be read while the audit runs.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from dss_bulk.audits.coding import read, settled, text_of
from dss_bulk.audits.partial import Check, Partial, merged
from dss_bulk.limits import AUDIT_OUTPUT_BYTES_MAX
from dss_client.job_values import JobChunk

AUDIT_GROUPS_MAX = 64
"""Groups whose lag a report has, the furthest behind first."""


@dataclass(frozen=True, slots=True)
class GroupLag:
    """How far a group was behind at the end of the audit."""

    group: str
    state: str
    lag: int


@dataclass(frozen=True, slots=True)
class Output:
    """The output of one chunk."""

    partial: Partial
    is_whole: bool = False
    """Whether it is the result of all chunks."""
    groups: tuple[GroupLag, ...] = ()

    def to_json(self) -> str:
        """The output for the manifest."""
        found: dict[Check, int] = {
            check: each.count for check, each in self.partial.found.items() if each.count
        }
        fields: dict[str, object] = {"records": self.partial.records, "found": found}
        if self.is_whole:
            fields["groups"] = _fitting(self.groups)
        partial = settled(self.partial) if self.is_whole else self.partial
        room = AUDIT_OUTPUT_BYTES_MAX - len(json.dumps(fields).encode())
        return json.dumps({**fields, "partial": text_of(partial, room)})

    @classmethod
    def from_json(cls, text: str) -> "Output":
        """Read what `to_json` wrote."""
        fields = json.loads(text)
        groups = tuple(GroupLag(*each) for each in fields.get("groups", ()))
        return cls(read(fields["partial"]), "groups" in fields, groups)


async def output_of(chunks: AsyncIterator[JobChunk]) -> Output:
    """The results of the published chunks, in order."""
    whole = Output(Partial())
    async for chunk in chunks:
        if chunk.result is None:
            break
        output = await asyncio.to_thread(Output.from_json, chunk.result.output)
        if output.is_whole:
            return output
        whole = Output(await asyncio.to_thread(merged, whole.partial, output.partial))
    return whole


def _fitting(groups: Sequence[GroupLag]) -> list[tuple[str, str, int]]:
    """The groups furthest behind, as many as fit."""
    found: list[tuple[str, str, int]] = []
    left = AUDIT_OUTPUT_BYTES_MAX // 4
    for each in groups[:AUDIT_GROUPS_MAX]:
        row = (each.group, each.state, each.lag)
        left -= len(json.dumps(row).encode())
        if left < 0:
            break
        found.append(row)
    return found

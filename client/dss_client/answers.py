"""Answers of the daemon to what operators ask of groups: values, read from the wire.

Invariant: frozen values; no wire message leaves this module.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_client.group_counts import Fates, fates_from_wire

if TYPE_CHECKING:
    from dss_api.v1 import groups_pb2


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something does not come, or does not move."""

    code: str
    """A stable word."""
    sentence: str
    command: str
    """What to do next; empty where nothing need be done."""
    client_id: str
    """Who has it; empty where nobody does."""
    since_ms: int | None
    """By the daemon's wall clock."""
    until_ms: int | None
    attempt: int
    """How often it was handed out, this time included; 0: never, or it is not known."""
    blocked_by: int | None
    """The offset that must be done first."""


@dataclass(frozen=True, slots=True)
class RecordStanding:
    """Where a record stands for a group."""

    stream: str
    offset: int
    reason: Reason
    subject: str | None
    """None where the record is gone or cannot be read."""
    key: bytes | None
    appended_at_us: int | None
    floor: int
    """The group's first offset that is not done."""
    end: int
    """The stream's next offset."""
    ahead: int
    """How many records before it the group is not done with."""


@dataclass(frozen=True, slots=True)
class Looked:
    """Where a key was looked for."""

    stream: str
    start: int
    end: int
    """Nothing from here on was looked at."""
    to: int
    """Where the look would have ended without a bound."""


@dataclass(frozen=True, slots=True)
class WhyAnswer:
    """Where the records stand that were asked for."""

    records: tuple[RecordStanding, ...]
    """Of a key: the oldest that are not done, else the newest one."""
    looked: tuple[Looked, ...]
    next_command: str
    """How to look on, where a bound ended the look for a key; else empty."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A group, or a stream of it, that does not move."""

    group: str
    """NAME@FILTER."""
    stream: str
    """Empty: all of the group."""
    reason: Reason
    lag: int
    """Records that it is not done with."""
    still_ms: int | None
    """For how long nothing moved; None where that is not known."""


@dataclass(frozen=True, slots=True)
class ScanFound:
    """What a scan found of what a group is done with."""

    matching: int
    filtered: int
    missing: int
    """Damaged or gone."""


@dataclass(frozen=True, slots=True)
class StreamSums:
    """What a group is done with in a stream, and what not, since it began there."""

    stream: str
    began: int
    """The first offset that is counted."""
    end: int
    fates: Fates
    out: int
    """Sent to a client and not settled."""
    waiting: int
    gone: int
    """Retention took it, and the group has not come there."""
    uncounted: int
    """Done and in no count; negative: counted and not done."""
    problem: str
    """Why it does not add up, as a sentence; empty where it does."""
    scanned: ScanFound | None

    @property
    def appended(self) -> int:
        """Offsets since the group began."""
        return self.end - self.began


def sums_from_wire(sums: "groups_pb2.StreamSums") -> StreamSums:
    """The sums of one stream."""
    found = sums.scanned
    return StreamSums(
        sums.stream,
        sums.began,
        sums.end,
        fates_from_wire(sums.fates),
        sums.out,
        sums.waiting,
        sums.gone,
        sums.uncounted,
        sums.problem,
        ScanFound(found.matching, found.filtered, found.missing)
        if sums.HasField("scanned")
        else None,
    )


def stuck_from_wire(reply: "groups_pb2.StuckReply") -> tuple[Stuck, ...]:
    """The answer to `Groups.stuck`."""
    return tuple(
        Stuck(
            each.group,
            each.stream,
            reason_from_wire(each.reason),
            each.lag,
            each.still_ms if each.HasField("still_ms") else None,
        )
        for each in reply.stuck
    )


def why_from_wire(reply: "groups_pb2.WhyReply") -> WhyAnswer:
    """The answer to `Groups.why`."""
    return WhyAnswer(
        tuple(_record(each) for each in reply.records),
        tuple(Looked(each.stream, each.start, each.end, each.to) for each in reply.looked),
        reply.next_command,
    )


def reason_from_wire(reason: "groups_pb2.Reason") -> Reason:
    """A reason."""
    return Reason(
        reason.code,
        reason.sentence,
        reason.command,
        reason.client_id,
        reason.since_ms if reason.HasField("since_ms") else None,
        reason.until_ms if reason.HasField("until_ms") else None,
        reason.attempt,
        reason.blocked_by if reason.HasField("blocked_by") else None,
    )


def _record(record: "groups_pb2.RecordStanding") -> RecordStanding:
    return RecordStanding(
        record.stream,
        record.offset,
        reason_from_wire(record.reason),
        record.subject if record.HasField("subject") else None,
        record.key if record.HasField("key") else None,
        record.appended_at_us if record.HasField("appended_at_us") else None,
        record.floor,
        record.end,
        record.ahead,
    )

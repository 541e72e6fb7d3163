"""Events and counts of records that failed, once their entries are durable.

There is an event when a record fails for the third time, and when it becomes a dead letter. All
failures of one append are one event, which names the last of them. So a flood of dead letters makes
a few events, which are merged into one that is kept. Invariant: events are only about durable
entries; each entry counts once.
"""

from collections.abc import Iterator, Sequence

from dss_core.counted import counted
from dss_core.lane import DEAD, RETRY
from dssd.events.kinds import RECORD_DEAD, RECORD_FAILING
from dssd.events.model import GROUP_FIELD, Event, EventKind
from dssd.machines.delivery.causes import FOLLOWS, GIVEN_UP
from dssd.queues.entries import NewEntry, error_of
from dssd.queues.lane import Failed, Failure

KEY_TOLD_BYTES = 64
"""How much of a key is in an event: enough to tell it from others."""


FAILING_ATTEMPT = 3
"""The number of failures that causes an event: one failure is usual, and two may be."""


class FailureCounts:
    """Counts for all lanes, since the daemon started."""

    def __init__(self) -> None:
        self.retried = 0
        """Failures after which a record is retried."""
        self.dead = 0
        """Records that became dead letters."""

    def note(self, failed: Failed) -> None:
        """They failed."""
        self.retried += failed.retried
        self.dead += failed.dead


def failed_in(run: Sequence[NewEntry]) -> Failed:
    """The entries that stand for failures, of those that are durable now. Followers do not, nor
    records that an operator made dead letters."""
    new = [each for each in run if not each.piece.is_copied and each.piece.level != DEAD]
    new = [each for each in new if each.piece.cause not in (FOLLOWS, GIVEN_UP)]
    told = [each for each in new if _is_told(each)]
    return Failed(
        retried=sum([each.piece.to == RETRY for each in new]),
        dead=sum([each.piece.to == DEAD for each in new]),
        told=tuple(
            Failure(each.piece.to, each.lane, each.key, error_of(each.headers)) for each in told
        ),
    )


def failure_events(group: str, stream: str, failed: Failed) -> Iterator[Event]:
    """The events about records of a stream that failed in a group."""
    for kind, level in ((RECORD_FAILING, RETRY), (RECORD_DEAD, DEAD)):
        own = [each for each in failed.told if each.to == level]
        if own:
            yield _event(kind, group, stream, own)


def _is_told(entry: NewEntry) -> bool:
    return entry.piece.to == DEAD or entry.lane.attempt == FAILING_ATTEMPT


def _event(kind: EventKind, group: str, stream: str, failures: Sequence[Failure]) -> Event:
    last = failures[-1]
    lane, key = last.lane, _key_words(last.key)
    error = ": ".join(filter(None, (lane.error_type, last.error))) or lane.cause
    fields = {
        GROUP_FIELD: group,
        "record": f"{stream}@{lane.origin_offset}",
        "key": key,
        "attempt": str(lane.attempt),
        "cause": lane.cause,
        "error": error,
        "client_id": lane.client_id,
        "records": str(len(failures)),
    }
    return Event(kind, group, _sentence(kind, stream, failures, key, error), fields)


def _sentence(
    kind: EventKind, stream: str, failures: Sequence[Failure], key: str, error: str
) -> str:
    last = failures[-1].lane
    of_key = f" of key {key}" if key else ""
    record = f"{stream}@{last.origin_offset}{of_key}"
    became = "dead" if kind is RECORD_DEAD else "failing"
    if len(failures) == 1:
        told = f"The record {record} is {became} after {counted(last.attempt, 'attempt')}"
    else:
        told = f"{len(failures)} records are {became}, the last of them {record}"
    return f"{told}: {error}"


def _key_words(key: bytes | None) -> str:
    return (key or b"")[:KEY_TOLD_BYTES].decode(errors="backslashreplace")

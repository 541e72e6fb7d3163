"""Why a failed record is not delivered: it waits for its next attempt, or is a dead letter.

Invariant: pure; it is told what a queue has and asks nothing.
"""

from dataclasses import replace

from dss_core.answers import Reason
from dss_core.counted import counted
from dss_core.lane import DEAD
from dss_core.times import text_of_span
from dssd.questions.answers import FoundRecord
from dssd.questions.reasons import Now, RecordAsked
from dssd.queues.looking import QueueEntry

RETRYING, DEAD_LETTER = "retrying", "dead"
"""Codes."""


def queued(asked: RecordAsked, found: QueueEntry, now: Now) -> Reason:
    """The reason for the entry of a record."""
    return _dead(asked, found, now) if found.level == DEAD else _retrying(asked, found, now)


def _retrying(asked: RecordAsked, found: QueueEntry, now: Now) -> Reason:
    entry = found.entry
    left_ms = entry.due_ms - now.wall_ms
    due = f"due in {text_of_span(left_ms)}" if left_ms > 0 else "due now"
    told = f"It failed {entry.attempt} of {asked.group.max_deliver} times and is {due}"
    command = f"dssctl rq ls {asked.group_name}"
    if left_ms > 0:
        # The caller knows the record, and perhaps that the cause of its failure is fixed.
        command = f"dssctl rq retry-now {asked.group_name} {asked.stream}@{asked.offset}"
    return Reason(
        RETRYING,
        f"{told}; the last error: {found.error_words}.",
        command,
        entry.client_id,
        entry.first_failure_ms or None,
        entry.due_ms or None,
        entry.attempt,
    )


def _dead(asked: RecordAsked, found: QueueEntry, now: Now) -> Reason:
    entry, since_ms = found.entry, found.entered_at_us // 1_000
    age = text_of_span(max(0, now.wall_ms - since_ms))
    failures = f"after {counted(entry.attempt, 'failure')}; the last error"
    if not entry.attempt:
        failures = "without an attempt; the cause"
    told = f"It is among the dead letters since {age}, {failures}"
    command = f"dssctl dlq peek {asked.group_name} {asked.stream}@{asked.offset}"
    return Reason(
        DEAD_LETTER,
        f"{told}: {found.error_words}.",
        command,
        entry.client_id,
        since_ms,
        None,
        entry.attempt,
    )


def perhaps_queued(reason: Reason) -> Reason:
    """The reason, if the queues were not searched completely for the record."""
    told = f"{reason.sentence} Or it waits in a queue: not all entries were looked through."
    return replace(reason, sentence=told)


def record_of(found: QueueEntry) -> FoundRecord:
    """The record, as its stream had it."""
    return FoundRecord(found.subject, found.key, found.entry.origin_time_us)

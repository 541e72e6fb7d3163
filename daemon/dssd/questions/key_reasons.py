"""Why a record of an ordered group is not delivered: an earlier one of its key is unfinished.

The entries of a key in the queues of its stream are delivered in stream order; the *head* is the
first one, and all others wait for it. Invariant: pure; it gets the entries of a key and asks
nothing. It changes nothing for groups without order.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dss_core.answers import Reason
from dss_core.counted import counted
from dss_core.ids import StreamName
from dss_core.lane import DEAD
from dss_core.times import text_of_span
from dssd.machines.queues import BLOCK
from dssd.questions.queued_reasons import queued
from dssd.questions.reasons import QUEUES_FULL, Now, RecordAsked
from dssd.queues.looking import QueueEntry
from dssd.store.rows import GroupRow

BEHIND_KEY = "behind-key"
"""The code of a record that waits for an earlier one of its key."""

_TURN = frozenset({"behind", "due", "no-credit", "moving", QUEUES_FULL})
"""Codes of unsent records: if an earlier record of the key waits, that is the reason."""

_FIRST_IS_OUT = frozenset(
    {"handed-out", "sent", "resting", "moving", QUEUES_FULL, "suspect", "due"}
)
"""Codes of a record for which later ones of its key wait."""


@dataclass(frozen=True, slots=True)
class KeyHeld:
    """A key with entries in the queues of a stream."""

    head: QueueEntry
    waiting: int
    """So many later records of it wait there as well."""
    redriven_by: int = 0
    """The operation that brings dead letters of the stream back; 0: none does."""

    @property
    def at(self) -> int:
        """The offset of the head, in its stream."""
        return self.head.entry.origin_offset

    def named_for(self, asked: RecordAsked) -> str:
        """The head as a sentence about the record names it, with its stream if that is another
        one."""
        stream = str(self.head.stream)
        return f"{self.at}" if stream == asked.stream else f"{stream}@{self.at}"

    def holds(self, asked: RecordAsked) -> bool:
        """Whether a record waits for it."""
        return (StreamName.parse(asked.stream).ordinal, asked.offset) > self.head.origin


def key_held(
    group: GroupRow, entries: Iterable[QueueEntry], redriven_by: int = 0
) -> KeyHeld | None:
    """Sum up the entries of one key in the queues of a stream; None: they block nothing.

    In a group whose keys skip dead letters, these block nothing.
    """
    if not group.ordered:
        return None
    blocks = group.on_dead_letter == BLOCK
    # Of several entries of a record the newest counts: the others are done, but not reported yet.
    newest = {
        each.origin: each
        for each in sorted(entries, key=lambda each: (each.level, each.queue_offset))
        if blocks or each.level != DEAD
    }
    if not newest:
        return None
    return KeyHeld(newest[min(newest)], len(newest) - 1, redriven_by)


def of_entry(asked: RecordAsked, found: QueueEntry, held: KeyHeld | None, now: Now) -> Reason:
    """The reason for an entry in a queue."""
    if held is None or (found.level == DEAD and asked.group.on_dead_letter != BLOCK):
        return queued(asked, found, now)
    if not held.holds(asked):
        return _of_head(asked, held, now)
    where = "among the dead letters" if found.level == DEAD else "in the retry queue"
    since_ms = found.entered_at_us // 1_000
    return _behind(asked, f"It waits {where} for", held, now, since_ms)


def of_record(asked: RecordAsked, reason: Reason, held: KeyHeld | None, now: Now) -> Reason:
    """The reason for a record in its stream, unless its key is the actual reason."""
    if held is None or reason.code not in _TURN or not held.holds(asked):
        return reason
    return _behind(asked, "It comes after", held, now)


def behind_first(asked: RecordAsked, reason: Reason, at: int, first: Reason) -> Reason:
    """The reason; if the first unfinished record of the key is in flight, that one is the
    reason."""
    if not asked.group.ordered or asked.offset <= at or first.code not in _FIRST_IS_OUT:
        return reason
    if reason.code not in _TURN and reason.code != "sent":
        return reason
    told = f"It waits for the record at {at}, the first of its key that is not done."
    return replace(reason, code=BEHIND_KEY, sentence=told, command=asked.why(at), blocked_by=at)


def _behind(
    asked: RecordAsked, begins: str, held: KeyHeld, now: Now, since_ms: int | None = None
) -> Reason:
    told = (
        f"{begins} the record at {held.named_for(asked)}, the first of its key, "
        f"{_head_state(asked, held, now)}."
    )
    is_dead = held.head.level == DEAD and not held.redriven_by
    return Reason(
        BEHIND_KEY,
        told,
        _redrive(asked, held)
        if is_dead
        else replace(asked, stream=str(held.head.stream)).why(held.at),
        held.head.entry.client_id,
        since_ms,
        None if is_dead else held.head.entry.due_ms or None,
        blocked_by=held.at,
    )


def _head_state(asked: RecordAsked, held: KeyHeld, now: Now) -> str:
    entry = held.head.entry
    if held.head.level == DEAD:
        if held.redriven_by:
            return f"which operation {held.redriven_by} brings back"
        age = text_of_span(max(0, now.wall_ms - held.head.entered_at_us // 1_000))
        return f"which is dead since {age}: {held.head.error_words}"
    left_ms = entry.due_ms - now.wall_ms
    due = f"due in {text_of_span(left_ms)}" if left_ms > 0 else "due now"
    if not entry.attempt:
        return f"which is {due}"
    return f"which failed {entry.attempt} of {asked.group.max_deliver} times and is {due}"


def _of_head(asked: RecordAsked, held: KeyHeld, now: Now) -> Reason:
    found = held.head
    reason = queued(asked, found, now)
    if not found.entry.attempt:
        reason = replace(reason, sentence=_untried(found))
    told = f"{reason.sentence} {_what_waits(held.waiting)}"
    if found.level != DEAD:
        return replace(reason, sentence=f"{told}{_next_of_retry(asked, held)}")
    if held.redriven_by:
        told += f" Operation {held.redriven_by} brings dead letters of the stream back."
        return replace(reason, sentence=told, command=f"dssctl ops show {held.redriven_by}")
    told += " The key waits until it is redriven or discarded."
    return replace(reason, sentence=told, command=_redrive(asked, held))


def _untried(found: QueueEntry) -> str:
    """The sentence for a record that waited behind its key, and is now the first of it."""
    if found.level == DEAD:
        return (
            "It is among the dead letters, where it waited behind a record of its key that is done."
        )
    return "It waited behind a record of its key that is done, and comes next."


def _what_waits(waiting: int) -> str:
    if not waiting:
        return "Nothing else of its key waits in the queues."
    wait = "waits" if waiting == 1 else "wait"
    return f"{counted(waiting, 'later record')} of its key {wait} for it."


def _next_of_retry(asked: RecordAsked, held: KeyHeld) -> str:
    left = max(asked.group.max_deliver - held.head.entry.attempt, 1)
    blocks = asked.group.on_dead_letter == BLOCK
    key = "its key waits among the dead letters with it" if blocks else "its key goes on without it"
    return f" After {counted(left, 'more failure')} it is dead, and {key}."


def _redrive(asked: RecordAsked, held: KeyHeld) -> str:
    key = shlex.quote((held.head.key or b"").decode(errors="backslashreplace"))
    return f"dssctl dlq redrive {asked.group_name} --key {key}"

"""Kept events as rows of the store, and back."""

import json

from dssd.events.model import Event, KeptEvent, Severity
from dssd.store.rows import EventRow


def row_of(kept: KeptEvent) -> EventRow:
    """The row of a kept event."""
    return EventRow(
        number=kept.number,
        at_ms=kept.at_ms,
        code=kept.code,
        severity=kept.severity.word,
        subject=kept.subject,
        sentence=kept.sentence,
        fields=json.dumps(dict(kept.fields), ensure_ascii=False, separators=(",", ":")),
        times=kept.times,
        last_at_ms=kept.last_at_ms,
    )


def kept_in(row: EventRow) -> KeptEvent:
    """The kept event of a row."""
    return KeptEvent(
        number=row.number,
        at_ms=row.at_ms,
        code=row.code,
        severity=Severity[row.severity.upper()],
        subject=row.subject,
        sentence=row.sentence,
        fields=json.loads(row.fields),
        times=row.times,
        last_at_ms=row.last_at_ms,
    )


def drafted(event: Event, number: int, at_ms: int) -> EventRow:
    """The row of an event that is told once, at that time."""
    kind = event.kind
    said = (kind.code, kind.severity, event.subject, event.sentence, event.fields)
    return row_of(KeptEvent(number, at_ms, *said, times=1, last_at_ms=at_ms))

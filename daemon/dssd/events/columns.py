"""Kept events as rows of the store, and back."""

import json

from dssd.events.model import KeptEvent, Severity
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

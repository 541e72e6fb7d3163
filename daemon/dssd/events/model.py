"""Events as values: as a part tells them, and as the store keeps them.

Invariant: an event is complete when it is made. Its texts are within their bounds, can be stored,
and hold no secrets. This module must not know how events are kept.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from dss_core.redaction import masked
from dssd.events.limits import (
    EVENT_FIELD_BYTES_MAX,
    EVENT_FIELDS_MAX,
    EVENT_SENTENCE_BYTES_MAX,
    EVENT_SUBJECT_BYTES_MAX,
)

GROUP_FIELD = "group"
"""An event of a stream names the group that it concerns in this field."""

PRINCIPAL_FIELD = "principal"
"""The field that names the principal who caused the event."""

_PERSON = re.compile(r"token:(?!dss_)[A-Za-z0-9._-]+")
"""Matches principals named after their token; that name is no secret."""

_ELLIPSIS = "…".encode()


class Severity(IntEnum):
    """How bad it is, the worst last."""

    INFO = 1
    WARNING = 2
    ERROR = 3

    @property
    def word(self) -> str:
        """As rows and people write it."""
        return self.name.lower()


class Repeats(Enum):
    """How a repeated event is kept."""

    FOLDED = "counted in the event that is kept already, if that was lately"
    KEPT = "kept each time: whoever tells it limits how often"
    ONCE = "kept once: the same event with the same fields is known"


@dataclass(frozen=True, slots=True)
class EventKind:
    """A kind of event. Its code never changes its meaning."""

    code: str
    severity: Severity
    repeats: Repeats = Repeats.FOLDED


@dataclass(frozen=True, slots=True)
class Event:
    """What is told."""

    kind: EventKind
    subject: str
    """What it is about: a stream ``orders/0/3``, a group ``billing@orders/#``, a client, a file."""
    sentence: str
    """One sentence for people, with figures."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """The figures again, for programs."""

    def __post_init__(self) -> None:
        """Cut what is too long, leave secrets out, and replace what cannot be stored."""
        set_field = object.__setattr__  # the value is not seen by anybody yet
        people = {self.subject, self.fields.get(PRINCIPAL_FIELD, "")}
        people = {each for each in people if _PERSON.fullmatch(each)}
        set_field(self, "subject", _cut(self.subject, EVENT_SUBJECT_BYTES_MAX, people))
        set_field(self, "sentence", _cut(self.sentence, EVENT_SENTENCE_BYTES_MAX, people))
        assert len(self.fields) <= EVENT_FIELDS_MAX, self.fields
        bound = EVENT_FIELD_BYTES_MAX
        cut = {name: _cut(text, bound, people) for name, text in self.fields.items()}
        set_field(self, "fields", cut)

    @property
    def identity(self) -> tuple[str, ...]:
        """Events of one identity are repetitions of each other."""
        if self.kind.repeats is Repeats.ONCE:
            return once_identity(self.kind.code, self.subject, self.fields)
        return self.kind.code, self.subject, self.fields.get(GROUP_FIELD, "")


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """What is kept of it."""

    number: int
    """Rises, and is never reused."""
    at_ms: int
    """By the wall clock: when it was told first."""
    code: str
    severity: Severity
    subject: str
    sentence: str
    """As it was told last."""
    fields: Mapping[str, str]
    times: int
    """How often it was told, the first time included."""
    last_at_ms: int


Note = Callable[[Event], None]
"""Takes an event that is to be kept soon; never fails."""


def unheard(_event: Event) -> None:
    """Drops events: for a simulator, and for tests of other parts."""


def once_identity(code: str, subject: str, fields: Mapping[str, str]) -> tuple[str, ...]:
    """The identity of an event that is kept once, from an event or a kept event."""
    return code, subject, *(part for item in sorted(fields.items()) for part in item)


def _cut(text: str, bytes_max: int, people: Collection[str]) -> str:
    """The text within its bound, without secrets, half characters and lone surrogates."""
    encoded = masked(text, people).encode(errors="replace")
    if len(encoded) > bytes_max:
        kept = encoded[: bytes_max - len(_ELLIPSIS)].decode(errors="ignore").encode()
        encoded = kept + _ELLIPSIS
    return encoded.decode()

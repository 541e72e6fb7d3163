"""How rows become records: what a user specifies once for all rows of a backfill; a value.

Invariant: a rule in a manifest is read as the same rule, and a rule of an older tool means what it
meant there.
"""

import json
import re
from dataclasses import asdict, dataclass
from typing import Self

from dss_bulk.typed import Types

NULL_KEYS = ("refuse", "keyless")
"""For a row with a null key: refuse it, or make a record without a key."""

_FIELD = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class RowRule:
    """How a row becomes a record."""

    topic: str
    key: str | None = None
    """The column whose text is the key. None: no record has a key."""
    null_key: str = "refuse"
    subject: str | None = None
    """A template over columns; None: the topic's name."""
    time: str | None = None
    """The column of times; if there is none, or a null, ``now_us`` of the chunk."""
    payload: str | None = None
    """The payload column: bytes and text as they are, other values as JSON. None: the line of a
    file of JSON lines; for other files a JSON object of all columns."""
    order: tuple[str, ...] = ()
    """Columns by which the rows are sorted; empty: their own order."""
    types: Types | None = ()
    """Types of columns of text. None: the tool that made the job guessed types."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        fields = json.loads(text)
        said = fields.get("types")
        types = None if said is None else tuple((column, kind) for column, kind in said)
        return cls(**{**fields, "order": tuple(fields["order"]), "types": types})

    def to_json(self) -> str:
        """For the manifest."""
        return json.dumps(asdict(self))

    @property
    def subject_columns(self) -> tuple[str, ...]:
        """Columns in the subject template."""
        return self.subject_parts[1::2]

    @property
    def subject_parts(self) -> tuple[str, ...]:
        """Text, column, text and so on, up to the last text."""
        return () if self.subject is None else tuple(_FIELD.split(self.subject))

    @property
    def beside_payload(self) -> tuple[str, ...]:
        """Columns that are used for anything but the payload."""
        named = (self.key, self.time)
        return (*(each for each in named if each is not None), *self.subject_columns, *self.order)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are used."""
        return (*self.beside_payload, *(() if self.payload is None else (self.payload,)))

"""How rows become records: what a user says once for all rows of a backfill; a value.

Invariant: what was written into a manifest is read as the same rule, and what an older tool wrote
means what it meant.
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
    """A column; its text is the key. None: no record has one."""
    null_key: str = "refuse"
    subject: str | None = None
    """A template over columns; the topic's name where absent."""
    time: str | None = None
    """A column of times; where absent, or null, ``now_us`` of the chunk."""
    payload: str | None = None
    """A column: bytes and text as they are, other values as JSON. Where absent, the line of a file
    of JSON lines; of other files a JSON object of all columns."""
    order: tuple[str, ...] = ()
    """Columns by which the rows are sorted; their own order where none is given."""
    types: Types | None = ()
    """Of columns of text. None: what a value is was guessed, by the tool that made the job."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote."""
        fields = json.loads(text)
        said = fields.get("types")
        types = None if said is None else tuple((column, kind) for column, kind in said)
        return cls(**{**fields, "order": tuple(fields["order"]), "types": types})

    def to_json(self) -> str:
        """For the manifest."""
        return json.dumps(asdict(self))

    @property
    def subject_columns(self) -> tuple[str, ...]:
        """Columns that the template names."""
        return self.subject_parts[1::2]

    @property
    def subject_parts(self) -> tuple[str, ...]:
        """Text, column, text and so on to the last text."""
        return () if self.subject is None else tuple(_FIELD.split(self.subject))

    @property
    def beside_payload(self) -> tuple[str, ...]:
        """Columns that are named for anything but the payload."""
        named = (self.key, self.time)
        return (*(each for each in named if each is not None), *self.subject_columns, *self.order)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are named anywhere."""
        return (*self.beside_payload, *(() if self.payload is None else (self.payload,)))

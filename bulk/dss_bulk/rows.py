"""Rows as records: what a backfill makes of each row of its files.

A subject is a template over columns, ``flights/{origin}/{carrier}``. A payload is one column of
bytes or text, or a JSON object of all columns. Rows come with two columns of their own, ``__file``
and ``__row``, which say where they stood, and perhaps with ``__reject``, why one cannot be read.

Invariant: each row becomes one record or one reject, in the order of the rows. Pure functions over
tables; this module must not know files.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc

from dss_bulk.csv_rows import REJECT
from dss_bulk.payload_bounds import payloads_fit
from dss_bulk.rejects import Reject
from dss_bulk.tables import HEADERS_TYPE
from dss_core.arrow_layout import no_headers
from dss_core.arrow_routing import hashes_or_null
from dss_core.errors import DssError, IllegalArgument
from dss_core.filters import check_subject
from dss_core.limits import KEY_BYTES_MAX, RECORD_BYTES_MAX

NULL_KEYS = ("refuse", "keyless")
"""What becomes of a row whose key is null: it is refused, or is a record without a key."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)
_TIMES = "it takes timestamps, ISO 8601 as text, or microseconds since 1970"
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
    """A column of bytes or text; where absent, a JSON object of all columns."""
    order: tuple[str, ...] = ()
    """Columns by which the rows are sorted; their own order where none is given."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "order": tuple(fields["order"])})

    def to_json(self) -> str:
        """For the manifest."""
        return json.dumps(asdict(self))

    @property
    def subject_columns(self) -> tuple[str, ...]:
        """Columns that the template names."""
        return () if self.subject is None else tuple(_FIELD.findall(self.subject))

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are named anywhere."""
        named = (self.key, self.time, self.payload)
        return (*(each for each in named if each is not None), *self.subject_columns, *self.order)


class RowsMade(NamedTuple):
    """What a batch of rows gave."""

    records: pa.Table
    rejects: list[Reject]


class RowsChecked(NamedTuple):
    """What a batch of rows would give."""

    records: int
    subjects: set[str]
    """Of these records."""
    rejects: list[Reject]


class _Values(NamedTuple):
    """Of each row, but its payload."""

    subjects: list[str]
    keys: list[bytes | None]
    times_us: list[int | None]
    rejects: dict[int, Reject]
    """By row: those that make no record."""

    @property
    def kept(self) -> list[int]:
        """The rows that do."""
        return [row for row in range(len(self.keys)) if row not in self.rejects]


def records_of(rows: pa.Table, files: Sequence[str], rule: RowRule, now_us: int) -> RowsMade:
    """The records of rows, in their order, with the columns that staging takes.

    Args:
        rows: what `dss_bulk.inputs` gives.
        files: the paths that ``__file`` counts.
        rule: how.
        now_us: the time of records that have none.

    Raises:
        IllegalArgument: a column has values that cannot be what it is named for.
    """
    payloads = _payloads(rows, rule)
    values = _values(rows, files, rule, now_us, list(map(len, payloads)))
    kept = values.kept
    records = _table(
        [values.subjects[at] for at in kept],
        [values.keys[at] for at in kept],
        [payloads[at] for at in kept],
        [values.times_us[at] for at in kept],
    )
    return RowsMade(records, list(values.rejects.values()))


def checked(rows: pa.Table, files: Sequence[str], rule: RowRule) -> RowsChecked:
    """What `records_of` gives, without the records: payloads are made only where one may be wrong.

    Raises:
        IllegalArgument: as `records_of`.
    """
    fit = payloads_fit(rows, rule.payload)
    sizes = [0] * rows.num_rows if fit else list(map(len, _payloads(rows, rule)))
    values = _values(rows, files, rule, 0, sizes)
    kept = values.kept
    return RowsChecked(
        len(kept), {values.subjects[at] for at in kept}, list(values.rejects.values())
    )


def _values(
    rows: pa.Table, files: Sequence[str], rule: RowRule, now_us: int, payload_bytes: Sequence[int]
) -> _Values:
    plain = {name: rows[name].to_pylist() for name in set(rule.columns) - {rule.payload}}
    keys = _keys(plain, rows.num_rows, rule)
    subjects = _subjects(plain, rows.num_rows, rule)
    times = [None] * rows.num_rows if rule.time is None else plain[rule.time]
    times_us = [now_us if value is None else _time_us(value) for value in times]
    reasons = _reasons(keys, subjects, payload_bytes, rule) | _unreadable(rows)
    for at, time_us in enumerate(times_us):
        if time_us is None:
            reasons.setdefault(at, f"its {rule.time} is no time: {str(times[at])[:40]}; {_TIMES}")
    return _Values(subjects, keys, times_us, _rejects(rows, files, reasons))


def _rejects(rows: pa.Table, files: Sequence[str], reasons: dict[int, str]) -> dict[int, Reject]:
    if not reasons:
        return {}
    numbers = zip(rows["__file"].to_pylist(), rows["__row"].to_pylist(), strict=True)
    return {
        at: Reject(files[file], row, reasons[at])
        for at, (file, row) in enumerate(numbers)
        if at in reasons
    }


def _unreadable(rows: pa.Table) -> dict[int, str]:
    """Rows that have no values, and why."""
    if REJECT not in rows.column_names or rows[REJECT].null_count == rows.num_rows:
        return {}
    return {at: reason for at, reason in enumerate(rows[REJECT].to_pylist()) if reason is not None}


def _table(
    subjects: list[str],
    keys: list[bytes | None],
    payloads: list[bytes],
    times_us: Sequence[int | None],
) -> pa.Table:
    return pa.table(
        {
            "subject": pa.array(subjects, pa.utf8()).dictionary_encode(),
            "key": pa.array(keys, pa.binary()),
            "payload": pa.array(payloads, pa.binary()),
            "headers": no_headers(len(keys)) if keys else pa.array([], HEADERS_TYPE),
            "timestamp_us": pa.array(times_us, pa.int64()),
            "key_hash": hashes_or_null(keys),
        }
    )


def _keys(plain: dict[str, list[Any]], rows: int, rule: RowRule) -> list[bytes | None]:
    if rule.key is None:
        return [None] * rows
    return [_key(value) for value in plain[rule.key]]


def _subjects(plain: dict[str, list[Any]], rows: int, rule: RowRule) -> list[str]:
    if rule.subject is None:
        return [rule.topic] * rows
    columns = [plain[name] for name in rule.subject_columns]
    if not columns:
        return [rule.subject] * rows
    template = _FIELD.sub("{}", rule.subject)
    made: dict[tuple[Any, ...], str] = {}
    found = []
    for values in zip(*columns, strict=True):
        if values not in made:
            made[values] = template.format(*("" if v is None else v for v in values))
        found.append(made[values])
    return found


def _payloads(rows: pa.Table, rule: RowRule) -> list[bytes]:
    if rule.payload is not None:
        values = rows[rule.payload].to_pylist()
        return [v.encode() if isinstance(v, str) else v or b"" for v in values]
    names = [name for name in rows.column_names if not name.startswith("__")]
    columns = [_finite(rows[name]).to_pylist() for name in names]
    encode = json.JSONEncoder(separators=(",", ":"), default=_json_value).encode
    return [
        encode(dict(zip(names, values, strict=True))).encode()
        for values in zip(*columns, strict=True)
    ]


def _finite(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """JSON has no NaN and no infinity: they are null there."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))


def _json_value(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    raise IllegalArgument(argument="a column", rule=f"{type(value).__name__} is no JSON value")


def _key(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return str(value).encode()


def _time_us(value: object) -> int | None:
    """Microseconds since 1970; none where it is no time."""
    if isinstance(value, datetime):
        return ((value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH) // _US
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else None
    if isinstance(value, str):
        try:
            return _time_us(datetime.fromisoformat(value))
        except ValueError:
            return None
    return None


def _reasons(
    keys: list[bytes | None], subjects: list[str], payload_bytes: Sequence[int], rule: RowRule
) -> dict[int, str]:
    """Why rows make no record, by row of the batch."""
    found: dict[int, str] = {}
    wrong_subjects = {subject: _wrong_subject(subject) for subject in set(subjects)}
    needs_key = rule.key is not None and rule.null_key == "refuse"
    for row, (key, subject, size) in enumerate(zip(keys, subjects, payload_bytes, strict=True)):
        if needs_key and key is None:
            found[row] = f"its key {rule.key} is null"
        elif wrong_subjects[subject] is not None:
            found[row] = f"its subject is wrong: {wrong_subjects[subject]}"
        elif key is not None and len(key) > KEY_BYTES_MAX:
            found[row] = f"its key has more than {KEY_BYTES_MAX} bytes"
        elif size + len(key or b"") > RECORD_BYTES_MAX:
            found[row] = f"it has more than {RECORD_BYTES_MAX} bytes"
    return found


def _wrong_subject(subject: str) -> str | None:
    try:
        check_subject(subject)
    except DssError as error:
        return error.message
    return None

"""Rows as records: what a backfill makes of each row of its files.

A subject is a template over columns, ``flights/{origin}/{carrier}``. A payload is one column, the
line of the row, or a JSON object of all columns. Rows come with two more columns, ``__file`` and
``__row``, which name their source, and perhaps with ``__reject``, the reason why a row cannot be
read, and ``__line``.

Invariant: each row becomes one record or one reject, in the order of the rows. Pure functions over
tables; this module must not know files.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dss_bulk.csv_rows import REJECT
from dss_bulk.json_rows import LINE
from dss_bulk.payload_bounds import payloads_fit
from dss_bulk.rejects import Reject
from dss_bulk.row_rule import RowRule
from dss_bulk.tables import HEADERS_TYPE
from dss_bulk.values import finite, json_value, values_of
from dss_core.arrow_layout import no_headers
from dss_core.arrow_routing import hashes_or_null
from dss_core.errors import DssError
from dss_core.filters import check_subject
from dss_core.limits import KEY_BYTES_MAX, RECORD_BYTES_MAX

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)
_TIMES = "it takes timestamps, ISO 8601 as text, or microseconds since 1970"
OWN = ("__file", "__row", REJECT, LINE)
"""Columns besides those of a file."""
_NUMBER = re.compile(r"-?[0-9]{1,20}")
_encoded = json.JSONEncoder(separators=(",", ":"), default=json_value, allow_nan=False).encode


class RowsMade(NamedTuple):
    """The records and rejects of a batch of rows."""

    records: pa.Table
    rejects: list[Reject]


class RowsChecked(NamedTuple):
    """The counts of records and rejects of a batch of rows."""

    records: int
    subjects: set[str]
    """The bytes of these records."""
    rejects: list[Reject]


class _Values(NamedTuple):
    """The values of each row, except its payload."""

    subjects: list[str]
    keys: list[bytes | None]
    times_us: list[int | None]
    rejects: dict[int, Reject]
    """By row: the reason why it makes no record."""

    @property
    def kept(self) -> list[int]:
        """The rows that make a record."""
        return [row for row in range(len(self.keys)) if row not in self.rejects]


class _Payloads(NamedTuple):
    """The payload of each row."""

    payloads: list[bytes]
    unfit: dict[int, str]
    """The reason for each row without one."""

    @property
    def sizes(self) -> list[int]:
        """The sizes in bytes."""
        return list(map(len, self.payloads))


def records_of(rows: pa.Table, files: Sequence[str], rule: RowRule, now_us: int) -> RowsMade:
    """The records of rows, in their order, with the columns that staging takes.

    Args:
        rows: as `dss_bulk.inputs` gives them.
        files: the paths that ``__file`` counts.
        rule: how rows become records.
        now_us: the time of records without one.
    """
    payloads = _payloads(rows, rule)
    values = _values(rows, files, rule, now_us, payloads)
    kept = values.kept
    records = _table(
        [values.subjects[at] for at in kept],
        [values.keys[at] for at in kept],
        [payloads.payloads[at] for at in kept],
        [values.times_us[at] for at in kept],
    )
    return RowsMade(records, list(values.rejects.values()))


def checked(rows: pa.Table, files: Sequence[str], rule: RowRule) -> RowsChecked:
    """The counts of `records_of` without its records: payloads are made only if one may be
    wrong."""
    fit = payloads_fit(rows, rule.payload)
    payloads = _Payloads([b""] * rows.num_rows, {}) if fit else _payloads(rows, rule)
    values = _values(rows, files, rule, 0, payloads)
    kept = values.kept
    return RowsChecked(
        len(kept), {values.subjects[at] for at in kept}, list(values.rejects.values())
    )


def _values(
    rows: pa.Table, files: Sequence[str], rule: RowRule, now_us: int, payloads: "_Payloads"
) -> _Values:
    plain, unfit = _plain(rows, rule)
    keys = _keys(plain, rows.num_rows, rule)
    subjects = _subjects(plain, rows.num_rows, rule)
    times = [None] * rows.num_rows if rule.time is None else plain[rule.time]
    times_us = [now_us if value is None else _time_us(value) for value in times]
    unfit = payloads.unfit | unfit | _unreadable(rows)
    reasons = _reasons(keys, subjects, payloads.sizes, rule) | unfit
    for at, time_us in enumerate(times_us):
        if time_us is None:
            reasons.setdefault(at, f"its {rule.time} is no time: {str(times[at])[:40]}; {_TIMES}")
    return _Values(subjects, keys, times_us, _rejects(rows, files, reasons))


def _plain(rows: pa.Table, rule: RowRule) -> tuple[dict[str, list[Any]], dict[int, str]]:
    """The values of used columns, by column, and the rows with a value that has no text."""
    plain: dict[str, list[Any]] = {}
    unfit: dict[int, str] = {}
    for name in dict.fromkeys(replace(rule, order=()).beside_payload):
        found = values_of(rows[name])
        plain[name] = found.values
        unfit |= {at: f"its {name} {why}" for at, why in found.none.items()}
        if pa.types.is_nested(rows[name].type):
            plain[name] = [None] * rows.num_rows
            kind = f"its {name} is {rows[name].type}, and no text"
            unfit |= {at: kind for at, each in enumerate(found.values) if each is not None}
    return plain, unfit


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
    """The rows without values, and the reasons."""
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
    parts = rule.subject_parts
    columns = [plain[name] for name in parts[1::2]]
    if not columns:
        return [rule.subject] * rows
    made: dict[tuple[Any, ...], str] = {}
    found = []
    for values in zip(*columns, strict=True):
        if values not in made:
            texts = ["" if value is None else str(value) for value in values]
            between = zip(texts, parts[2::2], strict=True)
            made[values] = parts[0] + "".join(text + part for text, part in between)
        found.append(made[values])
    return found


def _payloads(rows: pa.Table, rule: RowRule) -> _Payloads:
    if rule.payload is not None:
        return _of_one_column(rule.payload, rows[rule.payload])
    if LINE in rows.column_names:
        return _Payloads([line or b"" for line in rows[LINE].to_pylist()], {})
    return _of_all_columns(rows, rule)


def _of_one_column(name: str, column: pa.ChunkedArray) -> _Payloads:
    found = values_of(column)
    unfit = {at: f"its {name} {why}" for at, why in found.none.items()}
    return _Payloads([_bytes(each, at, unfit) for at, each in enumerate(found.values)], unfit)


def _bytes(value: object, at: int, unfit: dict[int, str]) -> bytes:
    if value is None or isinstance(value, bytes):
        return value or b""
    return value.encode() if isinstance(value, str) else _json(value, at, unfit)


def _of_all_columns(rows: pa.Table, rule: RowRule) -> _Payloads:
    names = [name for name in rows.column_names if name not in OWN]
    if rule.types is None:  # The tool that made the job left these out.
        names = [name for name in names if not name.startswith("__")]
    if not names:
        return _Payloads([b"{}"] * rows.num_rows, {})
    unfit: dict[int, str] = {}
    columns = []
    for name in names:
        found = values_of(_finite(rows[name]))
        columns.append(found.values)
        unfit |= {at: f"its {name} {why}" for at, why in found.none.items()}
    objects = (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))
    return _Payloads([_json(each, at, unfit) for at, each in enumerate(objects)], unfit)


def _json(value: object, at: int, unfit: dict[int, str]) -> bytes:
    try:
        return _encoded(value).encode()
    except ValueError:
        pass  # A number that is none, within a list or the like: rare, so it is looked for here.
    try:
        return _encoded(finite(value)).encode()
    except (ValueError, TypeError, RecursionError) as error:
        unfit[at] = f"it cannot be written as JSON: {error}"
        return b""


def _finite(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """JSON has no NaN and no infinity: they become null."""
    if not pa.types.is_floating(column.type) or pa.types.is_float16(column.type):
        return column
    return pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))


def _key(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return str(value).encode()


def _time_us(value: object) -> int | None:
    """Microseconds since 1970; None if it is no time."""
    if isinstance(value, datetime):
        return ((value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH) // _US
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else None
    if isinstance(value, str):
        # Eight digits are a day, as in ISO 8601 without hyphens.
        if _NUMBER.fullmatch(value) and len(value) != len("20130101"):
            return _time_us(int(value))
        try:
            return _time_us(datetime.fromisoformat(value))
        except ValueError:
            return None
    return None


def _reasons(
    keys: list[bytes | None], subjects: list[str], payload_bytes: Sequence[int], rule: RowRule
) -> dict[int, str]:
    """The reason why rows make no record, by row of the batch."""
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

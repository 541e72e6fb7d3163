"""The selection of a job's records, as conditions of Spark SQL: those of `dss_bulk.selection`.

Invariant: the same records, for every filter and record; no Python runs for a row. Text only.
"""

import re
from collections.abc import Iterator, Sequence

from dss_bulk.selection import RecordSelection
from dss_core.filters import TopicFilter

_LEVEL = "[^/]*"


def subject_sql(filter: TopicFilter) -> str:
    """Whether ``subject`` is in a set of subjects."""
    levels = [_LEVEL if level == "+" else re.escape(level) for level in filter.levels]
    pattern = "/".join(levels)
    if filter.open_ended:
        pattern = f"{pattern}(/.*)?" if levels else ".*"
    hidden = "(?!\\$)" if filter.hides_dollar else ""
    return f"subject RLIKE {literal(f'^{hidden}{pattern}$')}"


def none_of(patterns: Sequence[str]) -> str:
    """Whether ``subject`` is in none of the sets."""
    each = [subject_sql(TopicFilter.parse(pattern)) for pattern in patterns]
    return f"NOT ({' OR '.join(each)})" if each else "false"


def conditions_of(selection: RecordSelection) -> str:
    """The condition under which a record is selected; true if everything is."""
    return " AND ".join(f"({each})" for each in _conditions(selection)) or "true"


def _conditions(selection: RecordSelection) -> Iterator[str]:
    if selection.append_from_us is not None:
        yield f"append_time_us >= {selection.append_from_us}L"
    if selection.append_until_us is not None:
        yield f"append_time_us < {selection.append_until_us}L"
    if selection.key is not None:
        yield f"key = {_binary(selection.key)}"
    if selection.subject is not None:
        yield subject_sql(selection.subject)
    for name, value in selection.headers:
        own = f"h.name = {literal(name)} AND h.value = {_binary(value)}"
        yield f"exists(headers, h -> {own})"


def _binary(value: bytes) -> str:
    return f"X'{value.hex()}'"


def literal(text: str) -> str:
    """A text as an SQL literal, whatever characters it has."""
    return f"CAST(X'{text.encode().hex()}' AS STRING)"

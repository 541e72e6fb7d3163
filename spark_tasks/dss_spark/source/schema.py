"""The one schema of the data source: its columns, and what each is in the SQL of Spark.

Invariant: a scan has a choice of these columns. This module loads neither Spark nor Arrow, because
whoever plans a read needs neither.
"""

from collections.abc import Collection, Sequence

from dss_core.errors import IllegalArgument
from dss_spark.names import HEADERS_SQL

COLUMNS = {
    "stream": "STRING",
    "offset": "BIGINT",
    "subject": "STRING",
    "key": "BINARY",
    "payload": "BINARY",
    "headers": HEADERS_SQL,
    "time": "TIMESTAMP",
    "append_time": "TIMESTAMP",
    "key_hash": "BIGINT",
}
DEAD_COLUMNS = {
    "attempt": "BIGINT",
    "redrives": "BIGINT",
    "cause": "STRING",
    "error_type": "STRING",
    "error": "STRING",
    "fingerprint": "STRING",
    "client_id": "STRING",
    "first_failure_at": "TIMESTAMP",
    "entered_at": "TIMESTAMP",
}
"""Beside the record of a dead letter; as `dss_bulk.tables.DEAD`."""


def columns_of(*, dead_letters: bool) -> dict[str, str]:
    """The columns that a read may have."""
    return {**COLUMNS, **DEAD_COLUMNS} if dead_letters else COLUMNS


def spark_schema(names: Sequence[str]) -> str:
    """Columns as Spark SQL declares them."""
    known = columns_of(dead_letters=True)
    return ", ".join(f"{name} {known[name]}" for name in names)


def require_columns(names: Sequence[str], known: Collection[str]) -> None:
    """Make sure that the columns exist, each named once.

    Raises:
        IllegalArgument: a column does not exist, or none is named.
    """
    unknown = [name for name in names if name not in known]
    if unknown or not names or len(set(names)) < len(names):
        rule = f"it names some of {', '.join(known)}, each once"
        raise IllegalArgument(argument=f"columns {', '.join(names)!r}", rule=rule)

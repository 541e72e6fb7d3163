"""Names that both sides of a sink know: the planner of a write, and its tasks.

This module loads nothing: Spark's planner imports it anew for each chunk.
"""

STAGE = "dss_stage"
"""The sink of staged files, in `write.format`."""

EXPORT = "dss_export"
"""That of exported files."""

HOUR = "__hour"
"""The column of an export with the hour of a record, which decides its folder."""

HEADERS_SQL = "ARRAY<STRUCT<name: STRING, value: BINARY>>"
RECORD_SQL = (
    f"subject STRING, key BINARY, payload BINARY, headers {HEADERS_SQL}, timestamp_us BIGINT"
)
HASH = "__hash"
"""The hash of the key, as a signed number."""

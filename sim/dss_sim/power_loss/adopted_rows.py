"""The row that the script commits with adopted frames."""

from dssd.store.job_rows import ChunkRow

KEY = 1
"""The id of a job that does not exist, so nobody else looks at its rows."""


def published(number: int) -> ChunkRow:
    """The row with a number."""
    return ChunkRow(KEY, number, "", 0, 0, 1, "published", 0)

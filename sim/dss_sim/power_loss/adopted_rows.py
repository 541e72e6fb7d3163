"""The row that is committed with frames that are adopted, as the script makes it."""

from dssd.store.job_rows import ChunkRow

KEY = 1
"""Of a job that does not exist: nobody else looks at its rows."""


def published(number: int) -> ChunkRow:
    """The row of a number."""
    return ChunkRow(KEY, number, "", 0, 0, 1, "published", 0)

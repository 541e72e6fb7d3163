"""Reads more rows than one scan gives.

Pages are separate reads, so a row that changes meanwhile is seen as it is when its page is read.
This module must not know the adapter.
"""

from typing import TypeVar

from dssd.limits import PAGE_ROWS
from dssd.store.keys import key_of
from dssd.store.port import Key, Store, Versioned
from dssd.store.rows import Row

R = TypeVar("R", bound=Row)


async def scan_all(
    store: Store,
    kind: type[R],
    prefix: Key = (),
    *,
    after: Key | None = None,
    page_rows: int | None = None,
) -> list[Versioned[R]]:
    """All rows whose key starts with the prefix, in key order, read page by page.

    With ``after``, only later keys.
    """
    page_rows = page_rows or PAGE_ROWS
    found: list[Versioned[R]] = []
    while True:
        page = await store.scan(kind, prefix, after=after, limit=page_rows)
        found += page
        if len(page) < page_rows:
            return found
        after = key_of(page[-1].row)

"""What a kind of row is: its table, its key, its fields. See `dssd.store.rows`."""

from typing import ClassVar


class Row:
    """A kind of row. Leaves are frozen dataclasses with slots."""

    __slots__ = ()
    KEY: ClassVar[tuple[str, ...]]
    TABLE: ClassVar[str]

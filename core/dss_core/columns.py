"""Records as columns: what producers give and frames are built from.

Invariant: columns have one length; a column that is the same for all records may be given once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_core.rows_layout import Headers

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Columns:
    """Records as columns of equal length. Lists, or Arrow arrays where those are at hand."""

    payloads: "Sequence[bytes] | pa.BinaryArray"
    keys: "Sequence[bytes | None] | pa.BinaryArray | None" = None
    """None where no record has a key."""
    subjects: "Sequence[str] | str | pa.DictionaryArray" = ""
    """One subject for all, or one a record."""
    headers: "Sequence[Headers | None] | pa.MapArray | None" = None
    """None where no record has headers."""
    timestamps_us: "Sequence[int] | int | pa.Int64Array" = 0
    """One time for all, or one a record."""
    key_hashes: "Sequence[int | None] | pa.UInt64Array | None" = None
    """Routing hashes of the keys, where they were computed before."""

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.payloads)

    def cut(self, start: int, end: int) -> "Columns":
        """The records from one row up to another."""
        if start == 0 and end == self.records:
            return self
        return Columns(
            payloads=self.payloads[start:end],
            keys=None if self.keys is None else self.keys[start:end],
            subjects=self.subjects if isinstance(self.subjects, str) else self.subjects[start:end],
            headers=None if self.headers is None else self.headers[start:end],
            timestamps_us=self.timestamps_us
            if isinstance(self.timestamps_us, int)
            else self.timestamps_us[start:end],
            key_hashes=None if self.key_hashes is None else self.key_hashes[start:end],
        )

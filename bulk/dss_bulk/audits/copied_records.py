"""Where copies came from: the origin headers of a range, as columns.

Invariant: a record whose header names no origin counts as one that is no copy; its header was made
up, and nothing can be said of it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from dss_bulk.audits import origins
from dss_bulk.audits.origins import PAGE_BITS, PAGE_OFFSETS, Origin, Origins
from dss_bulk.audits.partial import Copied
from dss_bulk.audits.stepping_back import steps_back
from dss_bulk.limits import (
    AUDIT_CHUNK_PAGES_MAX,
    AUDIT_CHUNK_SOURCES_MAX,
    AUDIT_ORIGIN_STREAM_BYTES_MAX,
)
from dss_core.origin import ORIGIN

_ORIGIN = rf"^[A-Za-z0-9._/-]{{1,{AUDIT_ORIGIN_STREAM_BYTES_MAX}}}@[0-9]{{1,18}}$"
"""A stream as `dss_core.ids` writes it, and an offset that fits 63 bits."""

_PAGE_NUMBERS = pa.arange(0, PAGE_OFFSETS)


@dataclass(frozen=True, slots=True)
class Copies:
    """Of one range."""

    origins: Origins
    orders: dict[Copied, tuple[int, int]]
    falling: pa.BooleanArray | None
    """Rows that stand behind a newer record of the same key and source."""


def origins_of(table: pa.Table, stream: str) -> Copies:
    """What the records of a range say of where they came from."""
    rows, sources, offsets = _parsed(table["headers"])
    if not len(rows):
        return Copies(Origins(), {}, None)
    names = sources.dictionary.to_pylist()
    seen, orders, ordered = Origins(), {}, True
    for number, name in enumerate(names[:AUDIT_CHUNK_SOURCES_MAX]):
        own = offsets.filter(pc.equal(sources.indices, number))
        seen = origins.merged(seen, _seen(name, own), AUDIT_CHUNK_PAGES_MAX)
        low_high = pc.min_max(own).as_py()
        orders[stream, name] = (low_high["min"], low_high["max"])
        ordered = ordered and _rises(own, pc.greater_equal)
    falling = None
    if len(names) > AUDIT_CHUNK_SOURCES_MAX:
        beyond = pc.sum(pc.greater_equal(sources.indices, AUDIT_CHUNK_SOURCES_MAX)).as_py()
        seen, ordered = replace(seen, unexamined=seen.unexamined + beyond), False
    if not ordered:
        keys = table["key_hash"].take(rows)
        falling = _in_table(steps_back(keys, sources.indices, offsets), rows, table.num_rows)
    return Copies(seen, orders, falling)


def _parsed(headers: pa.ChunkedArray) -> tuple[pa.Array, pa.DictionaryArray, pa.Array]:
    """Rows that are copies, the streams that they came from, and the offsets there."""
    whole = pa.concat_arrays(headers.chunks or [pa.array([], headers.type)])
    named = pc.equal(whole.keys, ORIGIN)
    lists = pa.ListArray.from_arrays(whole.offsets, whole.keys)
    rows = pc.list_parent_indices(lists).filter(named)
    values = whole.items.filter(named)
    valid = pc.match_substring_regex(values, _ORIGIN)
    rows, values = rows.filter(valid), values.filter(valid).cast(pa.utf8())
    # A record has its origin once; of one that was made up, the first is taken, as readers do.
    again = pc.fill_null(pc.equal(rows[1:], rows[:-1]), False)
    if pc.any(again, min_count=0).as_py():
        once = pa.concat_arrays([pa.array([True]), pc.invert(again)])
        rows, values = rows.filter(once), values.filter(once)
    parts = pc.split_pattern(values, "@").flatten()
    at = pc.multiply(_numbers(len(values)), pa.scalar(2, pa.int64()))
    sources = parts.take(at).dictionary_encode()
    return rows, sources, parts.take(pc.add(at, pa.scalar(1, pa.int64()))).cast(pa.int64())


def _seen(stream: str, offsets: pa.Array) -> Origins:
    once: pa.Array = offsets
    first: tuple[Origin, ...] = ()
    if not _rises(offsets, pc.greater):
        counts = pc.value_counts(offsets)
        once = counts.field("values")
        doubled = once.filter(pc.greater(counts.field("counts"), 1)).to_pylist()
        first = origins.lowest({(stream, offset) for offset in doubled})
    numbers = pc.shift_right(once, PAGE_BITS)
    kept = pc.unique(numbers).sort()[:AUDIT_CHUNK_PAGES_MAX]
    fits = pc.is_in(numbers, value_set=kept)
    pages = {(stream, page): _bits(once, numbers, page) for page in kept.to_pylist()}
    return Origins(
        pages=pages,
        doubles=len(offsets) - len(once),
        doubled=first,
        unexamined=len(once) - (pc.sum(fits).as_py() or 0),
    )


def _bits(offsets: pa.Array, numbers: pa.Array, page: int) -> int:
    own = offsets.filter(pc.equal(numbers, page))
    span = pc.min_max(own).as_py()
    low = int(span["min"])
    mask = pc.is_in(_numbers(span["max"] - low + 1), value_set=pc.subtract(own, low))
    # Behind the last one a buffer has bits of no meaning.
    bits = int.from_bytes(mask.buffers()[1].to_pybytes(), "little") & ((1 << len(mask)) - 1)
    return bits << low - (page << PAGE_BITS)


def _rises(values: pa.Array, than: Callable[[pa.Array, pa.Array], pa.Array]) -> bool:
    return bool(pc.all(than(values[1:], values[:-1]), min_count=0).as_py())


def _numbers(count: int) -> pa.Int64Array:
    """From 0 up; those of a page are kept."""
    if count <= PAGE_OFFSETS:
        return _PAGE_NUMBERS[:count]
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)


def _in_table(
    marked: pa.BooleanArray | None, rows: pa.Array, records: int
) -> pa.BooleanArray | None:
    """Marks of some rows of a table as marks of all of them."""
    if marked is None:
        return None
    return pc.is_in(_numbers(records), value_set=rows.filter(marked).cast(pa.int64()))

"""The origins of copies: the origin headers of a range, as columns.

Invariant: a record whose header names no origin does not count as a copy: its header was made up by
somebody else, and says nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from dss_bulk.audits import origins
from dss_bulk.audits.origins import PAGE_BITS, PAGE_OFFSETS, Origin, Origins
from dss_bulk.audits.partial import Copied
from dss_bulk.audits.stepping_back import steps_back
from dss_core.origin import ORIGIN

AUDIT_CHUNK_PAGES_MAX = 512
"""How many pages of origins one chunk has: 4 MiB. A made-up header may name an offset far from all
others."""

AUDIT_ORIGIN_STREAM_BYTES_MAX = 512
"""The longest stream name in an origin: a longer one is no stream of ours."""

AUDIT_CHUNK_SOURCES_MAX = 1_024
"""How many streams the origins of one range may name: each costs a pass over all."""


_STREAM = rf"[A-Za-z0-9._/-]{{1,{AUDIT_ORIGIN_STREAM_BYTES_MAX}}}"
"""The form of a stream name, as `dss_core.ids` writes it."""
_DIGITS_MAX = 18
"""The most digits of an offset, so that it fits 63 bits."""
_ORIGIN = rf"^{_STREAM}@[0-9]{{1,{_DIGITS_MAX}}}$"

_PAGE_NUMBERS = pa.arange(0, PAGE_OFFSETS)


@dataclass(frozen=True, slots=True)
class Copies:
    """The copies in one range."""

    origins: Origins
    orders: dict[Copied, tuple[int, int]]
    falling: pa.BooleanArray | None
    """Copies that come after a newer record of the same key and source."""


def origins_of(table: pa.Table, stream: str) -> Copies:
    """The origins of the records of a range."""
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
    """The rows that are copies, their source streams, and their offsets there."""
    whole = pa.concat_arrays(headers.chunks or [pa.array([], headers.type)])
    named = pc.equal(whole.keys, ORIGIN)
    lists = pa.ListArray.from_arrays(whole.offsets, whole.keys)
    rows = pc.list_parent_indices(lists).filter(named)
    values = whole.items.filter(named)
    if (parted := _parted(values)) is None:
        valid = pc.match_substring_regex(values, _ORIGIN)
        rows, values = rows.filter(valid), values.filter(valid)
    # A record has one origin; of several, made-up ones, the first counts, as for readers.
    again = pc.fill_null(pc.equal(rows[1:], rows[:-1]), False)
    if pc.any(again, min_count=0).as_py():
        once = pa.concat_arrays([pa.array([True]), pc.invert(again)])
        rows, values, parted = rows.filter(once), values.filter(once), None
    return rows, *(parted or _parts_of(values.cast(pa.utf8())))


def _parted(values: pa.BinaryArray) -> tuple[pa.DictionaryArray, pa.Int64Array] | None:
    """The parts of origins if all rows have them; None if a row may have none.

    Matching a pattern for each row takes most of the time of an audit of copies; streams are few.
    """
    try:
        sources, offsets = _texts_of(values.cast(pa.utf8()))
    except pa.ArrowInvalid:
        return None
    sources = sources.dictionary_encode()
    holds = (
        pc.all(pc.match_substring_regex(sources.dictionary, f"^{_STREAM}$"), min_count=0),
        pc.all(pc.ascii_is_decimal(offsets), min_count=0),
        pc.all(pc.less_equal(pc.binary_length(offsets), _DIGITS_MAX), min_count=0),
    )
    return (sources, offsets.cast(pa.int64())) if all(each.as_py() for each in holds) else None


def _parts_of(origins_found: pa.StringArray) -> tuple[pa.DictionaryArray, pa.Int64Array]:
    sources, offsets = _texts_of(origins_found)
    return sources.dictionary_encode(), offsets.cast(pa.int64())


def _texts_of(origins_found: pa.StringArray) -> tuple[pa.StringArray, pa.StringArray]:
    """The texts before the mark and after it.

    Raises:
        pa.ArrowInvalid: a row does not have two parts.
    """
    lists = pc.split_pattern(origins_found, "@")
    if not pc.all(pc.equal(pc.list_value_length(lists), 2), min_count=0).as_py():
        raise pa.ArrowInvalid("a value has no mark, or several")
    parts = lists.flatten()
    at = pc.multiply(_numbers(len(origins_found)), pa.scalar(2, pa.int64()))
    return parts.take(at), parts.take(pc.add(at, pa.scalar(1, pa.int64())))


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
    if span["max"] - low + 1 == len(own):
        return ((1 << len(own)) - 1) << low - (page << PAGE_BITS)
    mask = pc.is_in(_numbers(span["max"] - low + 1), value_set=pc.subtract(own, low))
    # After the last bit, a buffer has bits without a meaning.
    bits = int.from_bytes(mask.buffers()[1].to_pybytes(), "little") & ((1 << len(mask)) - 1)
    return bits << low - (page << PAGE_BITS)


def _rises(values: pa.Array, than: Callable[[pa.Array, pa.Array], pa.Array]) -> bool:
    return bool(pc.all(than(values[1:], values[:-1]), min_count=0).as_py())


def _numbers(count: int) -> pa.Int64Array:
    """The numbers from 0 up; those of a page are kept."""
    if count <= PAGE_OFFSETS:
        return _PAGE_NUMBERS[:count]
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)


def _in_table(
    marked: pa.BooleanArray | None, rows: pa.Array, records: int
) -> pa.BooleanArray | None:
    """The marks of some rows of a table, as marks of all rows."""
    if marked is None:
        return None
    return pc.is_in(_numbers(records), value_set=rows.filter(marked).cast(pa.int64()))

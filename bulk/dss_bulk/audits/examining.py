"""The findings in the records of one range of a stream: Arrow in, a partial result out.

Invariant: the whole range is checked for gaps and doubled offsets, whatever is selected of it; all
other checks are of the selected records. A check that can be decided for a whole column is not made
record by record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dss_bulk.audits.copied_records import origins_of
from dss_bulk.audits.partial import Amount, Check, Found, Partial, first
from dss_bulk.audits.stepping_back import steps_back
from dss_bulk.audits.top_keys import TopKeys, kept
from dss_bulk.limits import AUDIT_EXAMPLES_MAX
from dss_bulk.offset_runs import runs_of
from dss_bulk.selecting import selected
from dss_bulk.selection import RecordSelection
from dss_core.arrow_routing import partitions_of
from dss_core.filters import TopicFilter
from dss_core.progress import Range, Ranges, complement, normalised, without
from dss_core.routing import Router

AUDIT_KEY_SHOWN_BYTES_MAX = 48
"""How many bytes of a key are shown: keys may have 65,534 bytes."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a storage topic is routed."""

    router: Router
    partitions: int
    factor: int


@dataclass(frozen=True, slots=True)
class Rule:
    """The rules for records of a topic."""

    patterns: tuple[TopicFilter, ...]
    shapes: Mapping[int, Shape]
    """The routing of each storage topic."""
    selection: RecordSelection


@dataclass(frozen=True, slots=True)
class RangeRead:
    """A range of a stream, and everything that a reader got of it."""

    stream: str
    storage_topic_id: int
    partition: int
    start: int
    end: int
    table: pa.Table
    """With the columns of `dss_bulk.tables.RECORDS`, in the order of reading."""
    damaged: Ranges = ()
    """Offsets that the reader reported as unreadable."""
    lost: Ranges = ()
    """Offsets that the reader reported as having no record."""


def examined(read: RangeRead, rule: Rule) -> Partial:
    """All findings of a range."""
    table = read.table.combine_chunks()
    found = {Check.DAMAGE: _told(read, read.damaged), Check.LOST: _told(read, read.lost)}
    seen = runs_of(table["offset"])
    found[Check.GAPS] = _ranges_found(read, _missing(read, seen))
    doubled = _doubled_offsets(read, seen, table)
    table = selected(table, rule.selection).combine_chunks()
    found[Check.MISROUTED] = _misrouted(read, table, rule.shapes[read.storage_topic_id])
    found[Check.SUBJECTS] = _foreign(read, table, rule.patterns)
    found[Check.TIMES] = _falling_times(read, table)
    copies = origins_of(table, read.stream)
    found[Check.ORDER] = _places(read, table, copies.falling)
    found[Check.DUPLICATES] = doubled
    return Partial(
        streams={read.stream: _amount(table)},
        keyless=table["key"].null_count,
        found={check: each for check, each in found.items() if each.count},
        keys=_top_keys(table),
        origins=copies.origins,
        orders=copies.orders,
    )


# Offsets


def _missing(read: RangeRead, seen: Ranges) -> Ranges:
    told = normalised((*read.damaged, *read.lost))
    return without(complement(seen, read.start, read.end), told)


def _doubled_offsets(read: RangeRead, seen: Ranges, table: pa.Table) -> Found:
    doubles = table.num_rows - sum(end - start for start, end in seen)
    if not doubles:
        return Found()
    counts = pc.value_counts(_whole(table["offset"]))
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values").sort()
    some = twice[:AUDIT_EXAMPLES_MAX].to_pylist()
    return Found(doubles, first(f"{read.stream}@{offset} is there twice" for offset in some))


def _told(read: RangeRead, ranges: Ranges) -> Found:
    within = ((max(low, read.start), min(high, read.end)) for low, high in ranges)
    return _ranges_found(read, normalised(within))


def _ranges_found(read: RangeRead, ranges: Sequence[Range]) -> Found:
    count = sum(end - start for start, end in ranges)
    some = (f"{read.stream} {low}..{high - 1}" for low, high in ranges[:AUDIT_EXAMPLES_MAX])
    return Found(count, first(some))


# Records


def _misrouted(read: RangeRead, table: pa.Table, shape: Shape) -> Found:
    hashes = _whole(table["key_hash"])
    own = partitions_of(shape.router, hashes, shape.partitions, shape.factor)
    elsewhere = pc.fill_null(pc.not_equal(own, pa.scalar(read.partition, pa.uint64())), False)
    return _places(read, table, elsewhere)


def _foreign(read: RangeRead, table: pa.Table, patterns: Sequence[TopicFilter]) -> Found:
    subjects = _whole(table["subject"])
    names = pc.unique(subjects).to_pylist()
    foreign = [name for name in names if not any(each.matches(name) for each in patterns)]
    if not foreign:
        return Found()
    rows = pc.is_in(subjects, pa.array(foreign, subjects.type))
    found = _places(read, table, rows)
    firsts = {name: pc.index(subjects, name).as_py() for name in foreign[:AUDIT_EXAMPLES_MAX]}
    offsets = table["offset"]
    some = (f"{name} at {read.stream}@{offsets[row]}" for name, row in firsts.items())
    return Found(found.count, first(some))


def _falling_times(read: RangeRead, table: pa.Table) -> Found:
    return _places(read, table, steps_back(table["key_hash"], None, table["timestamp_us"]))


def _places(read: RangeRead, table: pa.Table, rows: pa.BooleanArray | None) -> Found:
    """How many rows are marked, and the first few of them."""
    count = 0 if rows is None else pc.sum(rows).as_py() or 0
    if not count:
        return Found()
    at = pc.indices_nonzero(rows)[:AUDIT_EXAMPLES_MAX]
    offsets = table["offset"].take(at).to_pylist()
    return Found(count, first(f"{read.stream}@{offset}" for offset in offsets))


# Amounts


def _amount(table: pa.Table) -> Amount:
    sizes = (pc.sum(pc.binary_length(table[name])).as_py() or 0 for name in ("key", "payload"))
    return Amount(table.num_rows, sum(sizes))


def _top_keys(table: pa.Table) -> TopKeys:
    keyed = table.select(["key_hash", "key"]).filter(pc.is_valid(table["key_hash"]))
    counts = pc.value_counts(_whole(keyed["key_hash"]))
    values, numbers = counts.field("values").to_pylist(), counts.field("counts").to_pylist()
    largest = kept(TopKeys(dict(zip(values, numbers, strict=True))))
    wanted = pa.array(list(largest.counts), pa.uint64())
    rows = pc.index_in(wanted, value_set=_whole(keyed["key_hash"]))
    names = (key[:AUDIT_KEY_SHOWN_BYTES_MAX] for key in keyed["key"].take(rows).to_pylist())
    return TopKeys(largest.counts, dict(zip(largest.counts, names, strict=True)), largest.short)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)

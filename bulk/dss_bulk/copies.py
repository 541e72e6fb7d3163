"""Copies of records: which subject each gets, and the headers that say where it came from.

`dss_bulk.copy_rule` decides subjects and `dss_core.origin` headers for single records; this module
gives the same for whole columns.

Invariant: a copy keeps key, payload, the producer's time and its own headers; only subject and
origin headers differ. Pure functions over tables as `DecodedBatch.to_arrow` gives them, with the
stream of each record beside it (`dss_bulk.tables.with_stream`).
"""

from array import array
from functools import lru_cache
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc

from dss_bulk.copy_rule import CopyRule
from dss_bulk.tables import HEADERS_TYPE, STREAM, flat
from dss_core.origin import HOP, JOB, ORIGIN, ORIGIN_HEADERS, ORIGIN_US, Source, copied_headers

_NAMES = (ORIGIN, ORIGIN_US, JOB, HOP)
"""The headers of a record that is copied for the first time, in the order of `copied_headers`."""

_FIRST_HOP = "1"
_I32_BYTES = 4


def copied(table: pa.Table, rule: CopyRule) -> pa.Table:
    """The copies of records, in their order.

    Raises:
        HopLimit: a record was copied too often already.
        IllegalArgument: the template is broken.
    """
    at = table.schema.get_field_index
    table = table.set_column(at("subject"), "subject", _subjects(table["subject"], rule))
    return table.set_column(at("headers"), "headers", _headers(table, rule))


def _subjects(subjects: pa.ChunkedArray, rule: CopyRule) -> pa.DictionaryArray:
    encoded = _encoded(subjects)
    names = [rule.subject_of(name) for name in encoded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(names, pa.utf8()))


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    whole = flat(column)
    return whole if isinstance(whole, pa.DictionaryArray) else whole.dictionary_encode()


def _headers(table: pa.Table, rule: CopyRule) -> pa.MapArray:
    headers = _own(table["headers"])
    if rule.hops_max < 1 or _copied_before(headers):
        return _headers_one_by_one(table, headers, rule)
    return _with_origins(headers, _origins(table, rule))


def _copied_before(headers: pa.MapArray) -> bool:
    """Whether any record has an origin header already."""
    return bool(pc.any(pc.is_in(headers.keys, pa.array(ORIGIN_HEADERS, pa.utf8()))).as_py())


def _headers_one_by_one(table: pa.Table, headers: pa.MapArray, rule: CopyRule) -> pa.MapArray:
    rows = zip(
        table[STREAM].to_pylist(),
        table["offset"].to_pylist(),
        table["append_time_us"].to_pylist(),
        headers.to_pylist(),
        strict=True,
    )
    copies = [
        copied_headers(tuple(own), Source(stream, offset, time_us), rule.job, rule.hops_max)
        for stream, offset, time_us, own in rows
    ]
    return pa.array(copies, HEADERS_TYPE)


def _origins(table: pa.Table, rule: CopyRule) -> pa.BinaryArray:
    """The values of the origin headers, four for each record, record after record.

    The bytes of each record are joined at once, and its values are cut from them, so no value is
    handled by itself in Python.
    """
    streams = _encoded(table[STREAM])
    names = pa.array([f"{stream}@" for stream in streams.dictionary.to_pylist()], pa.utf8())
    stream = names.take(streams.indices)
    offset = flat(table["offset"]).cast(pa.utf8())
    job = rule.job.encode()
    joined = pc.binary_join_element_wise(stream, offset, _behind_origin(table, job), "")
    # The start of the origin, the time and the job of each record, and its hop.
    origin = pa.Array.from_buffers(pa.int32(), len(joined) + 1, [None, joined.buffers()[1]])
    time = pc.add(origin[:-1], pc.add(pc.binary_length(stream), pc.binary_length(offset)))
    hop = pc.subtract(origin[1:], pa.scalar(len(_FIRST_HOP), pa.int32()))
    places = _in_turns(origin, time, pc.subtract(hop, pa.scalar(len(job), pa.int32())), hop)
    return pa.Array.from_buffers(
        pa.binary(), len(_NAMES) * len(joined), [None, places, joined.buffers()[2]]
    )


def _behind_origin(table: pa.Table, job: bytes) -> pa.StringArray:
    """Time, job and hop of each record, joined; often the same for all records of a frame."""
    times = _encoded(table["append_time_us"])
    texts = times.dictionary.cast(pa.utf8())
    each = pc.binary_join_element_wise(texts, job.decode() + _FIRST_HOP, "")
    return each.take(times.indices)


def _in_turns(first: pa.Int32Array, *others: pa.Int32Array) -> pa.Buffer:
    """One value of each in turn, and at the end the one that the first has more."""
    found = array("i", bytes(_I32_BYTES * (len(_NAMES) * len(others[0]) + 1)))
    for turn, column in enumerate((first, *others)):
        values = array("i")
        start, size_bytes = column.offset * _I32_BYTES, len(column) * _I32_BYTES
        values.frombytes(column.buffers()[1].slice(start, size_bytes))
        found[turn :: len(_NAMES)] = values
    return pa.py_buffer(found)


@lru_cache(1)
def _each() -> pa.Int32Scalar:
    """The number of origin headers of each record; with a first value Arrow loads pandas, if
    any."""
    return pa.scalar(len(_NAMES), pa.int32())


def _names(records: int) -> pa.StringArray:
    """The names of the origin headers for so many records."""
    return _repeated_names(_rounded(records))[: len(_NAMES) * records]


@lru_cache(2)
def _repeated_names(records: int) -> pa.StringArray:
    data = "".join(_NAMES).encode()
    ends = array("i", bytes(_I32_BYTES * (len(_NAMES) * records + 1)))
    for turn, start in enumerate(accumulate(map(len, _NAMES[:-1]), initial=0)):
        ends[turn :: len(_NAMES)] = array(
            "i", range(start, len(data) * (records + (turn == 0)), len(data))
        )
    return pa.StringArray.from_buffers(
        len(_NAMES) * records, pa.py_buffer(ends), pa.py_buffer(data * records)
    )


def _with_origins(headers: pa.MapArray, origins: pa.BinaryArray) -> pa.MapArray:
    """The own headers of each record, then its origin headers."""
    records, each = len(headers), _each()
    names, values = _names(records), origins
    offsets = pc.add(headers.offsets, pc.multiply(_numbers(records + 1), each))
    if len(headers.keys):
        rows = pc.list_parent_indices(_as_lists(headers)).cast(pa.int32())
        own_at = pc.add(_numbers(len(rows)), pc.multiply(rows, each))
        # The origin headers of a record come after its own headers, and those of earlier records.
        before = headers.offsets[1:].take(pc.divide(_numbers(len(_NAMES) * records), each))
        added_at = pc.add(_numbers(len(_NAMES) * records), before)
        order = pc.array_sort_indices(pa.concat_arrays([own_at, added_at]))
        names = pa.concat_arrays([headers.keys, names]).take(order)
        values = pa.concat_arrays([headers.items, values]).take(order)
    return pa.MapArray.from_arrays(offsets, names, values, HEADERS_TYPE)


def _numbers(count: int) -> pa.Int32Array:
    """The numbers from 0 up."""
    return _first_numbers(_rounded(count))[:count]


@lru_cache(2)
def _first_numbers(count: int) -> pa.Int32Array:
    return pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(array("i", range(count)))])


def _rounded(count: int) -> int:
    """A size rounded up, so that few different ones are made."""
    return 1 << count.bit_length()


def _as_lists(headers: pa.MapArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(headers.offsets, headers.keys)


def _own(headers: pa.ChunkedArray) -> pa.MapArray:
    """An array with only the entries of its rows: a slice still refers to all others."""
    return pa.concat_arrays(headers.chunks or [pa.array([], HEADERS_TYPE)])

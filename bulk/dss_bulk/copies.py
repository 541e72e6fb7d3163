"""Copies of records: which subject each gets, and the headers that say where it came from.

Subjects go by three rules: a template, where there is one; else a leading level that is the source
topic's name becomes the target's; else the target's name is put before. `dss_core.origin` rules
over the headers, and what is here gives the same for whole columns.

Invariant: a copy keeps key, payload, the producer's time and its own headers; subjects and origin
headers are all that differ. Pure functions over tables as `DecodedBatch.to_arrow` gives them.
"""

from array import array
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from dss_bulk.tables import HEADERS_TYPE
from dss_core.errors import IllegalArgument
from dss_core.origin import HOP, JOB, ORIGIN, ORIGIN_HEADERS, ORIGIN_US, Source, copied_headers

PLACEHOLDERS = ("subject", "source", "target", "rest")
"""Of a template: the whole subject, both topics, and the subject without a leading source topic."""

_NAMES = (ORIGIN, ORIGIN_US, JOB, HOP)
"""The headers of a record that is copied for the first time, in the order of `copied_headers`."""


@dataclass(frozen=True, slots=True)
class CopyRule:
    """How the records of one job are copied."""

    source: str
    """Name of the topic that is read."""
    target: str
    """Name of the topic that is written."""
    job: str
    """Name of the job, as its origin header says it."""
    hops_max: int
    template: str | None = None
    """Of subjects, with `PLACEHOLDERS` in braces."""

    def __post_init__(self) -> None:
        """Try the template.

        Raises:
            IllegalArgument: it names a placeholder that there is none of.
        """
        self.subject_of("x")

    def subject_of(self, subject: str) -> str:
        """What a copy is about.

        Raises:
            IllegalArgument: the template is broken.
        """
        first, _, rest = subject.partition("/")
        led = first == self.source
        if self.template is None:
            return "/".join(filter(None, (self.target, rest if led else subject)))
        fields = {
            "subject": subject,
            "source": self.source,
            "target": self.target,
            "rest": rest if led else subject,
        }
        try:
            return self.template.format_map(fields)
        except (KeyError, ValueError, IndexError, AttributeError) as broken:
            names = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise IllegalArgument(
                argument=f"subject template {self.template!r}", rule=f"it may name {names}"
            ) from broken


def copied(table: pa.Table, stream: str, rule: CopyRule) -> pa.Table:
    """The copies of the records of one stream, in their order.

    Raises:
        HopLimit: a record was copied too often already.
        IllegalArgument: the template is broken.
    """
    table = table.combine_chunks()
    at = table.schema.get_field_index
    table = table.set_column(at("subject"), "subject", _subjects(table["subject"], rule))
    return table.set_column(at("headers"), "headers", _headers(table, stream, rule))


def _subjects(subjects: pa.ChunkedArray, rule: CopyRule) -> pa.DictionaryArray:
    encoded = subjects.combine_chunks().dictionary_encode()
    names = [rule.subject_of(name) for name in encoded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(names, pa.utf8()))


def _headers(table: pa.Table, stream: str, rule: CopyRule) -> pa.MapArray:
    headers = _flat(table["headers"])
    if rule.hops_max < 1 or _copied_before(headers):
        return _headers_one_by_one(table, headers, stream, rule)
    return _with_origins(headers, _origins(table, stream, rule))


def _copied_before(headers: pa.MapArray) -> bool:
    """Whether any record has an origin header already."""
    return bool(pc.any(pc.is_in(headers.keys, pa.array(ORIGIN_HEADERS, pa.utf8()))).as_py())


def _headers_one_by_one(
    table: pa.Table, headers: pa.MapArray, stream: str, rule: CopyRule
) -> pa.MapArray:
    rows = zip(
        table["offset"].to_pylist(),
        table["append_time_us"].to_pylist(),
        headers.to_pylist(),
        strict=True,
    )
    copies = [
        copied_headers(tuple(own), Source(stream, offset, time_us), rule.job, rule.hops_max)
        for offset, time_us, own in rows
    ]
    return pa.array(copies, HEADERS_TYPE)


def _origins(table: pa.Table, stream: str, rule: CopyRule) -> pa.BinaryArray:
    """The values of the origin headers, four a record, record after record."""
    records = table.num_rows
    offset = table["offset"].combine_chunks().cast(pa.utf8())
    origin = pc.binary_join_element_wise(f"{stream}@", offset, "")
    origin_us = table["append_time_us"].combine_chunks().cast(pa.utf8())
    same = pa.array([rule.job, "1"], pa.utf8())
    values = pa.concat_arrays([origin, origin_us, same]).cast(pa.binary())
    return values.take(_turns(records))


@lru_cache(4)
def _turns(records: int) -> pa.Int32Array:
    """Where in origins, times, the job and the hop the values of each record stand."""
    places = array("i", bytes(4 * len(_NAMES) * records))
    places[0 :: len(_NAMES)] = array("i", range(records))
    places[1 :: len(_NAMES)] = array("i", range(records, 2 * records))
    places[2 :: len(_NAMES)] = array("i", [2 * records]) * records
    places[3 :: len(_NAMES)] = array("i", [2 * records + 1]) * records
    return pa.Array.from_buffers(pa.int32(), len(places), [None, pa.py_buffer(places)])


@lru_cache(1)
def _each() -> pa.Int32Scalar:
    """How many origin headers a record has; with its first value Arrow loads pandas, if any."""
    return pa.scalar(len(_NAMES), pa.int32())


@lru_cache(4)
def _names(records: int) -> pa.StringArray:
    """The names of the origin headers, of so many records."""
    turns = pa.py_buffer(array("i", range(len(_NAMES))) * records)
    places = pa.Array.from_buffers(pa.int32(), len(_NAMES) * records, [None, turns])
    return pa.array(_NAMES, pa.utf8()).take(places)


def _with_origins(headers: pa.MapArray, origins: pa.BinaryArray) -> pa.MapArray:
    """Each record's own headers, then its origin headers."""
    records, each = len(headers), _each()
    names, values = _names(records), origins
    offsets = pc.add(headers.offsets, pc.multiply(_numbers(records + 1), each))
    if len(headers.keys):
        rows = pc.list_parent_indices(_as_lists(headers)).cast(pa.int32())
        own_at = pc.add(_numbers(len(rows)), pc.multiply(rows, each))
        # An origin header stands behind all that its record, and those before, have of their own.
        before = headers.offsets[1:].take(pc.divide(_numbers(len(_NAMES) * records), each))
        added_at = pc.add(_numbers(len(_NAMES) * records), before)
        order = pc.array_sort_indices(pa.concat_arrays([own_at, added_at]))
        names = pa.concat_arrays([headers.keys, names]).take(order)
        values = pa.concat_arrays([headers.items, values]).take(order)
    return pa.MapArray.from_arrays(offsets, names, values, HEADERS_TYPE)


def _numbers(count: int) -> pa.Int32Array:
    """From 0 up."""
    return pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(array("i", range(count)))])


def _as_lists(headers: pa.MapArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(headers.offsets, headers.keys)


def _flat(headers: pa.ChunkedArray) -> pa.MapArray:
    """One array, whose entries are those of its rows alone: a cut still has all of the others."""
    return pa.concat_arrays(headers.chunks or [pa.array([], HEADERS_TYPE)])

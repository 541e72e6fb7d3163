"""Finds records that come after a newer one of the same key."""

import pyarrow as pa
import pyarrow.compute as pc


def steps_back(
    keys: pa.ChunkedArray | pa.Array,
    sources: pa.Array | None,
    values: pa.ChunkedArray | pa.Array,
) -> pa.BooleanArray | None:
    """Rows whose value is lower than that of the row before of the same key and source.

    None if there are none. Rows without a key, or without a value, are ignored.
    """
    if _never_falls(values):
        return None
    columns = {"key": keys, "value": values, "row": pa.array(range(len(values)), pa.int64())}
    if sources is not None:
        columns["source"] = sources
    table = pa.table(columns)
    table = table.filter(pc.and_(pc.is_valid(table["key"]), pc.is_valid(table["value"])))
    names = ["key", "row"] if sources is None else ["key", "source", "row"]
    table = table.sort_by([(name, "ascending") for name in names]).combine_chunks()
    back = pc.less(table["value"][1:], table["value"][:-1])
    for name in names[:-1]:
        back = pc.and_(back, pc.equal(table[name][1:], table[name][:-1]))
    rows = table["row"][1:].filter(back)
    if not len(rows):
        return None
    return pc.is_in(pa.array(range(len(values)), pa.int64()), value_set=rows.combine_chunks())


def _never_falls(values: pa.ChunkedArray | pa.Array) -> bool:
    known = values.drop_null()
    rises = pc.greater_equal(known[1:], known[:-1])
    return bool(pc.all(rises, min_count=0).as_py())

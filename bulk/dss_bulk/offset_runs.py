"""The offsets of a column as ranges."""

import pyarrow as pa
import pyarrow.compute as pc

from dss_core.progress import Ranges


def runs_of(offsets: pa.ChunkedArray) -> Ranges:
    """The offsets as ranges; a repeated one counts once."""
    combined = offsets.combine_chunks()
    values = combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
    if not len(values):
        return ()
    if not pc.all(pc.greater(values[1:], values[:-1]), min_count=0).as_py():
        values = pc.unique(values).sort()
    one = pa.scalar(1, pa.uint64())  # not at import: it loads pandas if that is installed
    ends = pc.indices_nonzero(pc.not_equal(pc.subtract(values[1:], values[:-1]), one))
    starts = pa.concat_arrays([pa.array([0], pa.uint64()), pc.add(ends, one)])
    lasts = pa.concat_arrays([ends, pa.array([len(values) - 1], pa.uint64())])
    firsts, behind = values.take(starts).to_pylist(), values.take(lasts).to_pylist()
    return tuple((low, high + 1) for low, high in zip(firsts, behind, strict=True))

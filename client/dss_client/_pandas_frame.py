"""Records as a frame of pandas, for whoever has pandas.

Invariant: loaded only when asked for; a row a record, a column a field, absent keys are None.
"""

import importlib.util
from typing import TYPE_CHECKING

import pyarrow as pa

from dss_core.errors import LibraryMissing

if TYPE_CHECKING:
    import pandas as pd

_TIMES = {"timestamp_us": "timestamp", "append_time_us": "append_time"}


def frame_of(table: "pa.Table") -> "pd.DataFrame":
    """The rows of a table of records.

    Raises:
        LibraryMissing: there is no pandas.
    """
    if importlib.util.find_spec("pandas") is None:
        raise LibraryMissing(library="pandas", purpose="A frame of pandas")
    for name in _TIMES:
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table.column(at).cast(pa.timestamp("us", tz="UTC")))
    named = table.rename_columns([_TIMES.get(name, name) for name in table.column_names])
    frame: pd.DataFrame = named.to_pandas()
    return frame

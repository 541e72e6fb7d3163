"""Frames that are built of many records at once: those that each run by itself gives."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dss_core.arrow_layout import HEADERS_TYPE
from dss_core.build import build_frame, split_columns
from dss_core.built_runs import BuiltRuns
from dss_core.columns import Columns
from dss_core.decode import decode
from dss_core.errors import DssError, IllegalArgument, IllegalSubject, RecordTooLarge
from dss_core.frame import verify
from dss_core.limits import KEY_BYTES_MAX, RECORD_BYTES_MAX
from dss_core.producer_ids import NO_PRODUCER

KINDS = st.tuples(
    st.sampled_from([0, 1, 700, 9_000]),
    st.sampled_from([None, b"", b"k", bytes(300)]),
    st.sampled_from(["a", "a/b", "c"]),
    st.integers(0, 3),
)
"""Of a record: bytes of payload, key, subject, headers."""

RUNS = st.lists(st.tuples(st.lists(KINDS, min_size=1, max_size=3), st.integers(1, 90)), max_size=4)
"""What the records of each run are by turns, and how many there are."""


def columns_of(kinds: list[tuple[int, bytes | None, str, int]]) -> Columns:
    headers = [[("n", b"v" * row)] * count for row, (*_, count) in enumerate(kinds)]
    return Columns(
        payloads=pa.array([bytes(size) for size, *_ in kinds], pa.binary()),
        keys=pa.array([key for _, key, *_ in kinds], pa.binary()),
        subjects=pa.array([subject for *_, subject, _ in kinds], pa.utf8()).dictionary_encode(),
        headers=pa.array(headers, HEADERS_TYPE),
        timestamps_us=pa.array(range(len(kinds)), pa.int64()),
    )


Runs = list[tuple[int, int, int]]


def told(frame: bytes) -> tuple[object, ...]:
    """All that a reader finds in a frame."""
    header, batch = verify(frame), decode(frame)
    columns = (batch.payloads, batch.keys, batch.subjects, batch.headers, batch.timestamps_us)
    hashes = batch.to_arrow(key_hashes=True)["key_hash"].to_pylist()
    return header.partition, header.records, header.subjects, hashes, *columns


def built(columns: Columns, runs: Runs) -> list[tuple[object, ...]]:
    made = BuiltRuns(columns, producer_id=NO_PRODUCER, sequence=0)
    found = [(told(b"".join(pieces)), records) for pieces, records in made.frames(runs)]
    assert [each[1] for each, _ in found] == [records for _, records in found]
    return [each for each, _ in found]


def run_by_run(columns: Columns, runs: Runs) -> list[tuple[object, ...]]:
    return [
        told(build_frame(cut, partition=run[0], producer_id=NO_PRODUCER, sequence=0))
        for run in runs
        for cut in split_columns(columns.cut(run[1], run[2]))
    ]


@settings(max_examples=20)
@given(RUNS, st.booleans())
def test_all_runs_at_once_give_the_frames_of_each_run(
    wanted: list[tuple[list[tuple[int, bytes | None, str, int]], int]], one_subject: bool
) -> None:
    rows = [kinds[row % len(kinds)] for kinds, count in wanted for row in range(count)]
    if one_subject:
        rows = [(size, key, "a", headers) for size, key, _, headers in rows]
    runs: Runs = []
    for number, (_, count) in enumerate(wanted):
        start = runs[-1][2] if runs else 0
        runs.append((number, start, start + count))
    columns = columns_of(rows)
    assert built(columns, runs) == run_by_run(columns, runs)


def test_columns_that_are_one_value_for_all_give_the_same_frames() -> None:
    columns = Columns(payloads=pa.array([b"p"] * 100, pa.binary()), subjects="a", timestamps_us=5)
    runs = [(0, 0, 50), (3, 50, 100)]
    assert built(columns, runs) == run_by_run(columns, runs)


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({"payloads": bytes(RECORD_BYTES_MAX + 1)}, RecordTooLarge),
        ({"payloads": None}, IllegalArgument),
        ({"keys": bytes(KEY_BYTES_MAX + 1)}, IllegalArgument),
        ({"subjects": "a/#"}, IllegalSubject),
        ({"subjects": None}, IllegalArgument),
    ],
)
def test_one_wrong_record_among_many_is_refused(
    changed: dict[str, object], refused: type[DssError]
) -> None:
    values: dict[str, object] = {"payloads": b"p", "keys": b"k", "subjects": "a"}
    types = {"payloads": pa.binary(), "keys": pa.binary(), "subjects": pa.utf8()}
    arrays = {
        name: pa.array([value] * 99 + [changed.get(name, value)], types[name])
        for name, value in values.items()
    }
    arrays["subjects"] = arrays["subjects"].dictionary_encode()
    with pytest.raises(refused):
        built(Columns(**arrays), [(0, 0, 100)])

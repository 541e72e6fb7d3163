from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dss_bulk import staging
from dss_bulk.staging import Staging
from dss_bulk.target import Target
from dss_core.decode import decode
from dss_core.errors import IllegalArgument
from dss_core.frame import read_header
from dss_core.routing import Router, key_hash, partition_of
from dss_core.staged import StagedFor, staged_frames
from support.bulk_tables import table_of

FOR = StagedFor(job_id=3, chunk=7, storage_topic_id=5)
TARGET = Target(Router.BLOCK, 6, 2)
Written = dict[int, list[tuple[bytes | None, bytes]]]


def staged(directory: Path, *tables: pa.Table) -> Written:
    """Key and payload of each record, by partition, in the order in which they would be read."""
    with Staging(directory, FOR, TARGET) as writing:
        for table in tables:
            writing.add(table)
        records = writing.records
        file = writing.finish()
    assert file is not None
    assert file.records == records
    found: Written = {}
    read = staged_frames(directory / file.name, FOR, file.bytes)
    for frame in (bytes(frame) for frames in read for frame in frames):
        rows = decode(frame)
        of = found.setdefault(read_header(frame).partition, [])
        of.extend(zip(rows.keys, rows.payloads, strict=True))
    return found


keys = st.lists(st.none() | st.sampled_from([b"a", b"b", b"c", b"d"]), min_size=1, max_size=80)


@given(keys)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_record_is_in_the_partition_of_its_key_once_and_in_order(
    tmp_path: Path, keys: list[bytes | None]
) -> None:
    payloads = [b"%d" % number for number in range(len(keys))]
    table = table_of(subjects=["t/x"] * len(keys), keys=keys, payloads=payloads)
    found = staged(tmp_path, table)
    order = {payload: number for number, payload in enumerate(payloads)}
    numbers = [[order[payload] for _, payload in rows] for rows in found.values()]
    assert all(each == sorted(each) for each in numbers)
    assert sorted(chain.from_iterable(numbers)) == list(range(len(keys)))
    for partition, rows in found.items():
        for key, _ in rows:
            if key is not None:
                assert partition == partition_of(Router.BLOCK, key_hash(key), 6, 2)


def test_records_without_a_key_are_spread_from_the_number_of_the_chunk(tmp_path: Path) -> None:
    table = table_of(subjects=["t"] * 12, keys=[None] * 12)
    found = staged(tmp_path, table)
    assert {partition: len(rows) for partition, rows in found.items()} == dict.fromkeys(range(6), 2)
    assert found[FOR.chunk % 6][0] == (None, b"0")


def test_what_is_staged_in_parts_is_what_is_staged_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(
        subjects=[f"t/{number % 3}" for number in range(99)],
        keys=[None if number % 5 == 0 else b"%d" % (number % 7) for number in range(99)],
    )
    at_once = staged(tmp_path, table)
    monkeypatch.setattr(staging, "STAGED_BATCH_BYTES", 1)
    assert staged(tmp_path, *(table.slice(at, 11) for at in range(0, 99, 11))) == at_once


def test_a_chunk_without_records_leaves_no_file(tmp_path: Path) -> None:
    with Staging(tmp_path, FOR, TARGET) as writing:
        writing.add(table_of(subjects=[]))
        assert writing.finish() is None
    assert list(tmp_path.iterdir()) == []


def test_an_error_leaves_no_file(tmp_path: Path) -> None:
    bad = table_of(subjects=["t"], headers=[(("n", b"x" * 70_000),)])
    with pytest.raises(IllegalArgument):
        staged(tmp_path, bad)
    assert list(tmp_path.iterdir()) == []

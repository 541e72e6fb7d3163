import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from dss_bulk.export import MANIFEST, ExportRun, Noted, state_of
from dss_core.errors import ExportBroken
from support.bulk_tables import table_of

HOUR_US = 3_600_000_000
STREAM = "orders/0/1"


def run_of(target: Path, job: str = "export-1") -> ExportRun:
    return ExportRun(target, "orders", 4, job)


def write(run: ExportRun, chunk: int, times_us: list[int], base: int = 0) -> int:
    table = table_of(
        subjects=["orders/eu"] * len(times_us),
        append_times_us=times_us,
        base=base,
        headers=[(("a", b"1"), ("a", b"2"))] * len(times_us),
    )
    return run.write_chunk(chunk, iter([(STREAM, table)]))


def test_a_run_appears_at_once_by_date_and_hour(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert write(run, 0, [0, HOUR_US - 1, HOUR_US]) == 3
    assert [path for path in tmp_path.rglob("*.parquet") if "run=" in path.parts[-4]] != []
    assert not any(path.name.startswith("run=") for path in tmp_path.iterdir())
    run.publish(Noted({STREAM: 3}))
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet"))
    folder = "run=000001/date=1970-01-01"
    assert files == [
        f"{folder}/hour=00/part-00000000.parquet",
        f"{folder}/hour=01/part-00000000.parquet",
    ]
    table = ds.dataset(tmp_path, partitioning="hive").to_table().sort_by("offset")
    assert table["offset"].to_pylist() == [0, 1, 2]
    assert table["headers"].to_pylist()[0] == [
        {"name": "a", "value": b"1"},
        {"name": "a", "value": b"2"},
    ]


def test_a_second_run_knows_where_the_first_one_ended(tmp_path: Path) -> None:
    first = run_of(tmp_path)
    write(first, 0, [0])
    first.publish(Noted({STREAM: 1, "orders/0/2": 7}))
    second = run_of(tmp_path, "export-2")
    write(second, 0, [5], base=1)
    second.publish(Noted({STREAM: 2}))
    state = state_of(tmp_path)
    assert state is not None
    assert (state.runs, state.ends) == (2, {STREAM: 2, "orders/0/2": 7})


def test_a_driver_that_was_killed_at_any_step_is_gone_on_from(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    write(run, 0, [0, 1])
    again = run_of(tmp_path)
    write(again, 0, [0, 1])
    write(again, 1, [2], base=2)
    with no_manifest(tmp_path), pytest.raises(OSError, match="directory"):
        again.publish(Noted({STREAM: 3}))  # killed before it was noted
    last = run_of(tmp_path)
    assert last.published
    last.publish(Noted({STREAM: 3}))
    assert ds.dataset(tmp_path, partitioning="hive").count_rows() == 3
    state = state_of(tmp_path)
    assert state is not None
    assert (state.runs, state.ends) == (1, {STREAM: 3})


@contextmanager
def no_manifest(target: Path) -> Iterator[None]:
    """None can be written meanwhile, as on a full disk."""
    in_its_way = target / f".{MANIFEST}"
    in_its_way.mkdir()
    yield
    in_its_way.rmdir()


def test_a_run_for_whose_note_there_is_no_room_is_there_once_and_noted_later(
    tmp_path: Path,
) -> None:
    run = run_of(tmp_path)
    write(run, 0, [0, 1])
    with no_manifest(tmp_path), pytest.raises(OSError, match="directory"):
        run.publish(Noted({STREAM: 2}))
    assert run.published, "so its chunk is not written again"
    run.publish(Noted({STREAM: 2}))
    assert sorted(path.name for path in tmp_path.iterdir()) == [MANIFEST, "run=000001"]
    assert ds.dataset(tmp_path, partitioning="hive").count_rows() == 2


def test_the_next_export_goes_on_behind_a_run_that_was_not_noted(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    write(run, 0, [0, 1])
    with no_manifest(tmp_path), pytest.raises(OSError, match="directory"):
        run.publish(Noted({STREAM: 2}))
    other = run_of(tmp_path, "export-2")
    assert (other.published, other.before.ends) == (False, {STREAM: 2})
    write(other, 0, [2], base=2)
    other.publish(Noted({STREAM: 3}))
    state = state_of(tmp_path)
    assert state is not None
    assert (state.runs, state.ends, state.job) == (2, {STREAM: 3}, "export-2")


def test_a_run_without_records_adds_no_folder_and_moves_on(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert write(run, 0, []) == 0
    run.publish(Noted({STREAM: 0}))
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]
    assert run_of(tmp_path, "export-2").folder.name == "run=000001"


def test_two_exports_to_one_folder_do_not_both_publish(tmp_path: Path) -> None:
    one, other = run_of(tmp_path, "export-1"), run_of(tmp_path, "export-2")
    write(one, 0, [0])
    write(other, 0, [0])
    one.publish(Noted({STREAM: 1}))
    with pytest.raises(ExportBroken, match="meanwhile"):
        other.publish(Noted({STREAM: 1}))
    other.discard()
    assert ds.dataset(tmp_path, partitioning="hive").count_rows() == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [MANIFEST, "run=000001"]


@pytest.mark.parametrize(
    "said",
    [
        "no json",
        json.dumps({"format": 2}),
        json.dumps(
            {"format": 1, "topic": "other", "topic_id": 1, "runs": 1, "ends": {}, "job": "j"}
        ),
        json.dumps(
            {"format": 1, "topic": "orders", "topic_id": 9, "runs": 1, "ends": {}, "job": "j"}
        ),
    ],
)
def test_a_folder_of_something_else_is_refused(tmp_path: Path, said: str) -> None:
    (tmp_path / MANIFEST).write_text(said)
    with pytest.raises(ExportBroken):
        run_of(tmp_path)

"""What is told of a bulk job, by its state."""

from dataclasses import replace

import pytest

from dss_client.job_values import ChunkResult, Job, JobChunk
from dssctl.nouns.jobs import CHUNK_KIND, JOB_KIND, chunk_item, job_item, what_next
from support.looked_at_job import JOB

NOW_US = 10_000_000


def cell(job: Job, header: str) -> str:
    column = next(each for each in JOB_KIND.columns if each.header == header)
    return column.text(job_item(job), NOW_US)


def test_progress_is_chunks_published_of_planned_and_per_cent() -> None:
    assert cell(JOB, "PROGRESS") == "3/8 37%"
    assert cell(replace(JOB, chunks=0, published=0), "PROGRESS") == "0/0"


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({}, "engine, pid 7"),
        ({"driver_lives": False}, "silent: engine, pid 7"),
        ({"driver_lives": False, "driver": ""}, "none"),
        ({"driver_lives": False, "ended_at_ms": 2_000, "state": "done"}, "engine, pid 7"),
        ({"driver_lives": False, "driver": "", "ended_at_ms": 2_000, "state": "done"}, "-"),
    ],
)
def test_a_driver_is_shown_with_whether_it_lives(changed: dict[str, object], shown: str) -> None:
    assert cell(replace(JOB, **changed), "DRIVER") == shown  # type: ignore[arg-type] # of its field


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "dssctl jobs wait again"),
        ({"driver_lives": False}, "takes it over, with epoch 3: dssctl jobs drive again"),
        ({"driver_lives": False, "driver": ""}, "dssctl jobs drive again"),
        ({"state": "paused"}, "dssctl jobs resume again"),
        ({"state": "paused", "driver_lives": False}, "begins at chunk 3 of 8"),
        ({"state": "done"}, "dssctl jobs rm again"),
        ({"state": "done", "kind": "audit"}, "dssctl audits show again"),
        ({"state": "failed"}, "3 of 8 chunks are published and stay"),
        ({"state": "cancelled"}, "dssctl jobs rm again"),
    ],
)
def test_what_comes_next_follows_from_the_state(changed: dict[str, object], said: str) -> None:
    assert said in "\n".join(what_next(replace(JOB, **changed)))  # type: ignore[arg-type] # of its field


def test_a_chunk_that_was_written_elsewhere_shows_input_and_output() -> None:
    result = ChunkResult({}, 5, 100, 0, "part-0.parquet")
    item = chunk_item(JobChunk(0, (), "flights.parquet, row group 0", 5, 100, result, 2_000))
    shown = {column.header: column.text(item, NOW_US) for column in CHUNK_KIND.columns}
    assert (shown["STATE"], shown["READS"]) == ("published", "flights.parquet, row group 0")
    assert shown["WROTE"] == "part-0.parquet"


def test_a_long_output_is_cut_in_a_table_alone() -> None:
    result = ChunkResult({}, 0, 0, 0, "x" * 5_000)
    item = chunk_item(JobChunk(0, (), "", 5, 100, result, 2_000))
    wrote = next(each for each in CHUNK_KIND.columns if each.header == "WROTE")
    assert wrote.text(item, NOW_US) == "x" * 100 + "..."
    assert item["output"] == "x" * 5_000

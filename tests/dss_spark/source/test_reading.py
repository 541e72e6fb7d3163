import asyncio
import threading
import traceback
from pathlib import Path

import pyarrow as pa
import pytest

from dss_client.job_values import SourceRange
from dss_core.errors import StreamDamaged
from dss_spark.source.options import SourceOptions
from dss_spark.source.reading import records_of
from dss_spark.source.schema import COLUMNS
from dssd.store.memory import MemoryStore
from support.log_in_process import opened_shelf
from support.segment_bytes import flip
from support.served_log import client_of


def read(endpoint: str, wanted: SourceRange, taken: list[pa.RecordBatch], most: int) -> None:
    """As a task does, which knows no loop."""
    options = SourceOptions.of({"topic": "a", "endpoint": endpoint})
    batches = records_of((wanted,), options, None)
    for batch in batches:
        taken.append(batch)
        if len(taken) == most:
            batches.close()  # type: ignore[attr-defined]
            return


async def test_damage_ends_a_task_with_its_code(tmp_path: Path) -> None:
    store = MemoryStore()
    async with opened_shelf(tmp_path, store) as shelf:
        topic = await shelf.topic("a")
        for number in range(3):
            await shelf.store(topic, b"%d" % number * 100)
            await shelf.log.roll(topic.producing.storage_topic_id)
    second = sorted(await asyncio.to_thread(lambda: [*tmp_path.glob("*.seg")]))[1]
    flip(second, second.stat().st_size - 9)
    wanted = SourceRange("a/0/0", topic.producing.storage_topic_id, 0, 0, 3)
    found: list[pa.RecordBatch] = []
    async with opened_shelf(tmp_path, store) as shelf, client_of(shelf) as client:
        with pytest.raises(StreamDamaged) as told:
            await asyncio.to_thread(read, client.endpoint, wanted, found, 99)
    assert [batch.schema.names for batch in found] == [[*COLUMNS], [*COLUMNS]]
    assert "DSS4001. Later records are readable" in "".join(traceback.format_exception(told.value))


async def test_a_task_that_is_given_up_ends_its_reading(tmp_path: Path) -> None:
    async with opened_shelf(tmp_path) as shelf:
        topic = await shelf.topic("a")
        for number in range(12):
            await shelf.store(topic, b"%d" % number)
            await shelf.log.roll(topic.producing.storage_topic_id)
        wanted = SourceRange("a/0/0", topic.producing.storage_topic_id, 0, 0, 12)
        found: list[pa.RecordBatch] = []
        async with client_of(shelf) as client:
            await asyncio.to_thread(read, client.endpoint, wanted, found, 2)
    assert len(found) == 2
    assert "dss reading" not in {thread.name for thread in threading.enumerate()}

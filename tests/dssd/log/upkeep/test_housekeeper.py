"""Jobs of the housekeeper that meet other changes."""

import asyncio
from collections.abc import Callable
from typing import Any

from dss_core.errors import StreamNotFound
from dss_core.ids import StreamId
from dssd.log.port import Append

Bench = Any
REMOVED = 9


async def test_a_frame_for_a_topic_that_is_being_removed_is_not_refused_as_disk_full(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    bench.log.open_storage_topic(REMOVED, 1)
    append = Append(StreamId(REMOVED, 0), make_frame(b"late"), 1)
    results, _ = await asyncio.gather(
        bench.log.append([append]), bench.log.remove_storage_topic(REMOVED)
    )
    assert [type(result) for result in results] == [StreamNotFound]
    assert not bench.log.is_read_only()

"""A start that sets a file aside tells operators so."""

import asyncio

from dss_api.v1 import events_pb2
from dssd.events.kinds import FILE_QUARANTINED
from support.daemon_process import running, short_directory
from support.raw_stubs import connected


async def test_a_file_that_a_start_sets_aside_is_an_event() -> None:
    with short_directory() as home:
        async with running("--data-dir", str(home)) as daemon:
            assert await daemon.stop() == 0
        (home / "log" / "stranger.seg").write_bytes(b"not ours")
        async with running("--data-dir", str(home)) as daemon, connected(daemon.endpoint) as stubs:
            asked = events_pb2.WatchEventsRequest(after_number=0, codes=[FILE_QUARANTINED.code])
            watching = stubs.events.Watch(asked)
            async with asyncio.timeout(60):
                event = await anext(aiter(watching))
            watching.cancel()
            said = daemon.said
    assert event.code == FILE_QUARANTINED.code
    assert event.subject.startswith("log/quarantine/stranger.seg")
    assert event.sentence == "At the start: no row names it."
    assert f"[{FILE_QUARANTINED.code}]: {event.subject}: " in said

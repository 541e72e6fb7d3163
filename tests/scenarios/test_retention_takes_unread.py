"""A daemon whose retention takes what a group has not read says so: log, status, events."""

import asyncio

from dss_api.v1 import daemon_pb2, events_pb2, groups_pb2, log_pb2, topics_pb2, types_pb2
from dssd.events.kinds import RETENTION_LOST
from support.daemon_process import running, short_directory
from support.raw_stubs import Stubs, connected

RECORDS = 5


async def status_with_losses(stubs: Stubs) -> daemon_pb2.DaemonStatus:
    async with asyncio.timeout(60):
        while True:
            status = await stubs.daemon.Status(daemon_pb2.DaemonStatusRequest())
            if status.unread_records_gone:
                return status


async def test_unread_records_that_retention_takes_are_told_and_counted() -> None:
    with short_directory() as directory:
        async with (
            running("--data-dir", str(directory)) as daemon,
            connected(daemon.endpoint) as stubs,
        ):
            await stubs.topics.Create(
                topics_pb2.CreateTopicRequest(name="orders", partitions=2, retention_ms=1)
            )
            await stubs.groups.Create(
                groups_pb2.CreateGroupRequest(
                    filter="$share/billing/orders/#", start=types_pb2.Start(earliest=True)
                )
            )
            records = [types_pb2.Record(payload=b"x")] * RECORDS
            await stubs.log.Publish(log_pb2.PublishRequest(topic="orders", records=records))
            status = await stubs.daemon.Status(daemon_pb2.DaemonStatusRequest())
            assert status.unread_records_gone == 0
        # Retention looks at the start, and then again after half a minute.
        async with running("--data-dir", str(directory)) as daemon:
            async with connected(daemon.endpoint) as stubs:
                status = await status_with_losses(stubs)
                lost = events_pb2.WatchEventsRequest(
                    after_number=0, severity_min=events_pb2.EVENT_SEVERITY_ERROR
                )
                watching = stubs.events.Watch(lost)
                async with asyncio.timeout(60):
                    event = await anext(aiter(watching))
                watching.cancel()
            assert await daemon.stop() == 0
    assert status.unread_records_gone == RECORDS
    [loss] = status.unread_losses
    assert (loss.topic, loss.group, loss.records) == ("orders", "billing", RECORDS)
    assert loss.exact
    assert daemon.said.count(f"[{RETENTION_LOST.code}]: billing@orders/#: ") == 1
    assert (event.code, event.subject) == (RETENTION_LOST.code, "billing@orders/#")
    assert event.fields["records"] == str(RECORDS)

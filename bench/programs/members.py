"""Members of a group in one process; print when a stream was delivered first under each grant.

Every member acknowledges each record at once. A line a grant of a stream: the time in nanoseconds
of the clock that all processes share, and the stream.
"""

import asyncio
import sys
import time

import dss_client


async def member(
    endpoint: str, group: str, topic: str, name: str | None, begun: asyncio.Semaphore
) -> None:
    given: set[str] = set()

    def granted(notice: dss_client.GrantNotice) -> None:
        given.discard(str(notice.stream))

    async with (
        dss_client.connect(name, endpoint=endpoint) as client,
        client.subscribe(f"$share/{group}/{topic}/#", on_grant=granted) as subscription,
    ):
        begun.release()
        async for record in subscription:
            if record.stream not in given:
                given.add(record.stream)
                print(time.monotonic_ns(), record.stream, flush=True)
            await record.ack()


async def main(endpoint: str, group: str, topic: str, count: int, name: str | None) -> None:
    begun = asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(count):
            tasks.create_task(member(endpoint, group, topic, name, begun))
        for _ in range(count):
            await begun.acquire()
        print("ready", flush=True)


endpoint, group, topic, count, *names = sys.argv[1:]
asyncio.run(main(endpoint, group, topic, int(count), names[0] if names else None))

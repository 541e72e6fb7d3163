import asyncio

from dss_bulk.in_turn import InTurn
from dss_bulk.work import ChunkDone
from dss_client.job_values import JobChunk
from dss_core.errors import DiskFull


class Slow:
    """Work whose chunks last until they are let go."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.go_on = asyncio.Semaphore(0)
        self.said: list[str] = []
        self.fails = False

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        self.begun.append(chunk.number)
        await self.go_on.acquire()
        if self.fails:
            raise DiskFull
        return ChunkDone(records=chunk.number)

    def stop(self) -> None:
        self.said.append("stop")

    def discard(self) -> None:
        self.said.append("discard")


def asked(work: InTurn, tasks: asyncio.TaskGroup, number: int) -> asyncio.Task[ChunkDone]:
    return tasks.create_task(work.chunk(chunk(number), last=False), name=f"chunk {number}")


def chunk(number: int) -> JobChunk:
    return JobChunk(number, (), "", 0, 0, None, None)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_chunk_is_worked_on_behind_the_one_before() -> None:
    slow = Slow()
    work = InTurn(slow)
    async with asyncio.TaskGroup() as tasks:
        first, second = asked(work, tasks, 3), asked(work, tasks, 4)
        await settled()
        assert slow.begun == [3]
        slow.go_on.release()
        await settled()
        assert (first.result().records, slow.begun) == (3, [3, 4])
        slow.go_on.release()
    assert second.result().records == 4


async def test_a_chunk_waits_while_the_one_before_is_to_be_done_again() -> None:
    slow = Slow()
    slow.fails = True
    work = InTurn(slow)
    async with asyncio.TaskGroup() as tasks:
        first = asyncio.ensure_future(work.chunk(chunk(3), last=False))
        second = asked(work, tasks, 4)
        slow.go_on.release()
        await settled()
        assert isinstance(first.exception(), DiskFull)
        assert slow.begun == [3], "it would take the room that the first one needs"
        slow.fails = False
        slow.go_on.release()
        slow.go_on.release()
        assert (await work.chunk(chunk(3), last=False)).records == 3
    assert (second.result().records, slow.begun) == (4, [3, 3, 4])


async def test_work_that_was_told_to_stop_begins_no_other_chunk() -> None:
    slow = Slow()
    work = InTurn(slow)
    async with asyncio.TaskGroup() as tasks:
        asked(work, tasks, 0)
        waiting = asked(work, tasks, 1)
        await settled()
        work.stop()
        slow.go_on.release()
    assert (slow.begun, waiting.result()) == ([0], ChunkDone())
    work.discard()
    assert slow.said == ["stop", "discard"]

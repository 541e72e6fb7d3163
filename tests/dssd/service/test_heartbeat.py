import asyncio

from dssd.service.heartbeat import Heartbeat


class Manager:
    """Hears beats."""

    beat_s = 0.0

    def __init__(self) -> None:
        self.heard: asyncio.Queue[str] = asyncio.Queue()

    def alive(self, status: str) -> None:
        self.heard.put_nowait(status)


async def test_beats_come_as_long_as_the_writer_moves() -> None:
    manager, stuck, asked = Manager(), asyncio.Event(), 0

    async def reach_writer() -> None:
        nonlocal asked
        asked += 1
        if asked > 2:
            stuck.set()
            await asyncio.Event().wait()

    beating = asyncio.create_task(Heartbeat(manager, reach_writer, lambda: "serving").run())
    await stuck.wait()
    assert [manager.heard.get_nowait() for _ in range(2)] == ["serving"] * 2
    assert manager.heard.empty()
    beating.cancel()

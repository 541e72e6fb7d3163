"""Events over a store that can be told to refuse or to take its time."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from dss_core.errors import DssError
from dssd.clock import Clock
from dssd.events.events import Events
from dssd.store.memory import MemoryStore
from dssd.store.port import Precondition, Write


class MovedClock(Clock):
    """Stands until it is moved."""

    __slots__ = ("passed_ms",)

    def __init__(self) -> None:
        self.passed_ms = 0

    def now_ms(self) -> int:
        return self.passed_ms

    def wall_ms(self) -> int:
        return 1_800_000_000_000 + self.passed_ms


class WilfulStore(MemoryStore):
    """A store in memory whose commits fail or wait when they are told to."""

    def __init__(self) -> None:
        super().__init__()
        self.refusal: DssError | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = asyncio.Event()
        self.commits = 0

    async def commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        self.asked.set()
        await self.gate.wait()
        if self.refusal is not None:
            raise self.refusal
        self.commits += 1
        return await super().commit(writes, preconditions)


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
async def store() -> WilfulStore:
    return WilfulStore()


@pytest.fixture
async def events(store: WilfulStore, clock: MovedClock) -> AsyncIterator[Events]:
    async with asyncio.timeout(60), await Events.open(store, clock) as opened:
        yield opened


@pytest.fixture
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is noted is written at once, and tried again at once."""
    monkeypatch.setattr("dssd.events.writer.EVENTS_REST_S", 0)
    monkeypatch.setattr("dssd.events.writer.EVENTS_RETRY_S", 0)

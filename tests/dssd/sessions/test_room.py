"""Sessions that were left behind keep nobody out, and cost one commit for many."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from dss_core.errors import SessionNotFound, TooManySessions
from dss_core.limits import SESSION_GRACE_S
from dss_sim.played_groups import MovedClock, Plant
from dss_sim.played_sessions import Hall, opened_hall
from dssd.sessions.client_items import Opening
from dssd.store.memory import MemoryStore
from dssd.store.port import Precondition, Put, Write
from dssd.store.rows import SessionRow

GRACE_MS = SESSION_GRACE_S * 1_000


class LateClock(MovedClock):
    """A clock whose durations a test stretches."""

    late_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.late_ms


class CountingStore(MemoryStore):
    """Notes how many rows of sessions each commit holds."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    async def commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        kinds = [type(each.row) if isinstance(each, Put) else each.kind for each in writes]
        if SessionRow in kinds:
            self.sizes.append(kinds.count(SessionRow))
        return await super().commit(writes, preconditions)


@pytest.fixture
async def plant(tmp_path: Path) -> AsyncIterator[Plant]:
    store = CountingStore()
    made = Plant(tmp_path / "log", store)
    made.clock = LateClock()
    await made.start()
    await made.topic("orders", 1)
    yield made
    await made.stop()
    await store.close()


@pytest.fixture(autouse=True)
def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dssd.sessions.room.SESSIONS_MAX", 5)
    monkeypatch.setattr("dssd.sessions.room.SESSIONS_PRINCIPAL_MAX", 3)
    monkeypatch.setattr("dssd.sessions.sessions.SESSIONS_GIVE_WAY_AT_ONCE", 1)


def wait(plant: Plant, span_ms: int = GRACE_MS) -> None:
    assert isinstance(plant.clock, LateClock)
    plant.clock.late_ms += span_ms


async def leave_behind(hall: Hall, *client_ids: str, principal: str = "alice") -> None:
    for client_id in client_ids:
        opening = Opening(client_id, expiry_s=600, principal=principal)
        hall.sessions.detach(await hall.sessions.attach(opening))


async def there(hall: Hall) -> list[str]:
    return [view.client_id for view in await hall.sessions.listed("", 100)]


async def test_who_left_first_gives_way_to_a_newcomer_of_its_principal(plant: Plant) -> None:
    async with opened_hall(plant) as hall:
        await leave_behind(hall, "c", "a", "b")
        await leave_behind(hall, "c")
        wait(plant)
        session = await hall.sessions.attach(Opening("d", principal="alice"))
        assert await there(hall) == ["b", "c", "d"]
        hall.sessions.detach(session)
        with pytest.raises(SessionNotFound):
            await hall.sessions.attach(Opening("a", session_id=bytes(16), principal="alice"))


async def test_a_client_that_may_be_coming_back_does_not_give_way(plant: Plant) -> None:
    async with opened_hall(plant) as hall:
        await leave_behind(hall, "a", "b", "c")
        wait(plant, GRACE_MS - 1_000)
        with pytest.raises(TooManySessions, match="alice's"):
            await hall.sessions.attach(Opening("d", principal="alice"))
        await hall.sessions.attach(Opening("b", principal="alice", expiry_s=600))
        assert await there(hall) == ["a", "b", "c"]


async def test_private_subscriptions_give_way_to_nobody(plant: Plant) -> None:
    async with opened_hall(plant) as hall:
        for client_id in "abc":
            async with hall.attached(client_id, expiry_s=600, principal="alice") as client:
                await client.subscribe("orders/#")
        wait(plant)
        with pytest.raises(TooManySessions) as refused:
            await hall.sessions.attach(Opening("d", principal="alice"))
        assert "dssctl sessions close" in refused.value.hint_text
        await hall.sessions.attach(Opening("d", principal="bob"))


async def test_where_all_are_too_many_the_principal_that_has_most_gives_way(plant: Plant) -> None:
    async with opened_hall(plant) as hall:
        await leave_behind(hall, "b1", "b2", principal="bob")
        await leave_behind(hall, "a1", "a2", "a3")
        wait(plant)
        await hall.sessions.attach(Opening("c", principal="carol"))
        assert await there(hall) == ["a2", "a3", "b1", "b2", "c"]


async def test_what_was_left_behind_gives_way_after_a_restart_too(plant: Plant) -> None:
    async with opened_hall(plant) as hall:
        await leave_behind(hall, "c", "a", "b")
    async with opened_hall(plant) as hall:
        with pytest.raises(TooManySessions):
            await hall.sessions.attach(Opening("d", principal="alice"))
        wait(plant)
        await hall.sessions.attach(Opening("d", principal="alice"))
        assert "d" in await there(hall)


async def test_sessions_that_expire_together_go_with_one_commit(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.sessions.room.SESSIONS_PRINCIPAL_MAX", 100)
    monkeypatch.setattr("dssd.sessions.room.SESSIONS_MAX", 100)
    store = plant.store
    assert isinstance(store, CountingStore)
    async with opened_hall(plant) as hall:
        for number in range(50):
            hall.sessions.detach(await hall.sessions.attach(Opening(f"c{number}")))
        wait(plant, GRACE_MS + 1)
        store.sizes.clear()
        await hall.sessions.discard_expired()
        assert sum(store.sizes) == 50
        assert len(store.sizes) == 1
        assert await there(hall) == []
    assert await store.scan(SessionRow) == []


async def test_a_start_writes_the_sessions_of_a_killed_daemon_with_one_commit(plant: Plant) -> None:
    store = plant.store
    assert isinstance(store, CountingStore)
    rows = [
        SessionRow(f"c{number}", bytes([number] * 16), 1, 600_000, None, "alice")
        for number in range(20)
    ]
    await store.commit([Put(row) for row in rows])
    store.sizes.clear()
    async with opened_hall(plant) as hall:
        assert store.sizes == [20]
        assert hall.sessions.counts().detached == 20
        resumed = await hall.sessions.attach(
            Opening("c7", session_id=bytes([7] * 16), clean_start=False, principal="alice")
        )
        assert resumed.client_id == "c7"
    assert all(found.row.disconnected_at_ms for found in await store.scan(SessionRow))

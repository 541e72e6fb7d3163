"""The contract that every adapter of the store keeps."""

import asyncio

import pytest

from dss_core.errors import Stopping
from dssd.store.along import along
from dssd.store.commit_listeners import ListenerFellBehind
from dssd.store.paging import scan_all
from dssd.store.port import (
    Absent,
    Change,
    Delete,
    Exists,
    PreconditionFailed,
    Put,
    Store,
    Versioned,
    VersionIs,
    Write,
)
from dssd.store.rows import (
    LeaderRow,
    ProgressRow,
    Row,
    SessionRow,
    SubscriptionRow,
    TopicNameRow,
)


def leader(group_id: int, epoch: int = 1) -> LeaderRow:
    return LeaderRow(group_id=group_id, boot_id=b"boot", leader_epoch=epoch, beat=0)


def progress(group_id: int, partition: int, floor: int = 0, finished: bool = False) -> ProgressRow:
    return ProgressRow(
        group_id=group_id,
        storage_topic_id=1,
        partition=partition,
        floor=floor,
        ranges=b"\x00\xff",
        frontier=floor,
        attempts=b"",
        finished=finished,
        cursor_generation=0,
    )


async def test_a_committed_row_is_read_back_as_it_was(store: Store) -> None:
    row = progress(7, 3, floor=2**62, finished=True)
    (version,) = await store.commit([Put(row)])
    assert await store.read(ProgressRow, (7, 1, 3)) == Versioned(row, version)


async def test_values_that_are_absent_are_not_those_that_are_empty(store: Store) -> None:
    absent = SessionRow("a", b"", 1, 0, disconnected_at_ms=None, principal="")
    present = SessionRow("b", b"\x00", 1, 0, disconnected_at_ms=0, principal="ü\x00\U0001f40d")
    await store.commit([Put(absent), Put(present)])
    assert [found.row for found in await store.scan(SessionRow)] == [absent, present]


async def test_a_boolean_is_read_back_as_a_boolean(store: Store) -> None:
    await store.commit([Put(progress(1, 1, finished=True))])
    found = await store.read(ProgressRow, (1, 1, 1))
    assert found is not None
    assert found.row.finished is True


async def test_a_missing_row_is_none(store: Store) -> None:
    assert await store.read(LeaderRow, (1,)) is None


async def test_each_write_gets_a_version_higher_than_all_before(store: Store) -> None:
    first = await store.commit([Put(leader(1)), Put(leader(2)), Delete(LeaderRow, (9,))])
    second = await store.commit([Put(leader(1, 2))])
    together = first + second
    assert together == sorted(set(together))
    assert len(first) == 3


async def test_a_row_made_again_has_a_higher_version_than_the_removed_one(store: Store) -> None:
    (made,) = await store.commit([Put(leader(1))])
    await store.commit([Delete(LeaderRow, (1,))])
    (again,) = await store.commit([Put(leader(1))])
    assert again > made
    with pytest.raises(PreconditionFailed):
        await store.commit([Put(leader(1, 5))], [VersionIs(LeaderRow, (1,), made)])


async def test_writes_of_one_commit_apply_in_order(store: Store) -> None:
    writes: list[Write] = [
        Put(leader(1)),
        Delete(LeaderRow, (1,)),
        Put(leader(1, 9)),
        Put(leader(1, 8)),
    ]
    versions = await store.commit(writes)
    assert await store.read(LeaderRow, (1,)) == Versioned(leader(1, 8), versions[-1])


async def test_a_commit_may_hold_rows_of_several_kinds(store: Store) -> None:
    await store.commit([Put(leader(1)), Put(progress(1, 0)), Put(leader(2)), Put(progress(1, 1))])
    assert len(await store.scan(LeaderRow)) == 2
    assert len(await store.scan(ProgressRow)) == 2


async def test_a_large_commit_gives_each_row_its_own_version(store: Store) -> None:
    rows = [progress(1, part, floor=part) for part in range(300)]
    # One key twice, far apart and side by side: the last one stays.
    rows += [progress(1, 0, floor=1_000), progress(1, 7, floor=1), progress(1, 7, floor=2)]
    versions = await store.commit([Put(row) for row in rows])
    assert versions == list(range(versions[0], versions[0] + 303))
    found = {each.row.partition: each for each in await store.scan(ProgressRow)}
    assert len(found) == 300
    assert found[0] == Versioned(rows[300], versions[300])
    assert found[7] == Versioned(rows[302], versions[302])
    assert found[299] == Versioned(rows[299], versions[299])


async def test_a_commit_without_writes_checks_its_preconditions(store: Store) -> None:
    assert await store.commit([], [Absent(LeaderRow, (1,))]) == []
    with pytest.raises(PreconditionFailed):
        await store.commit([], [Exists(LeaderRow, (1,))])


async def test_preconditions_that_hold_let_the_writes_through(store: Store) -> None:
    (version,) = await store.commit([Put(leader(1))], [Absent(LeaderRow, (1,))])
    await store.commit([Put(leader(1, 2))], [VersionIs(LeaderRow, (1,), version)])
    await store.commit([Put(leader(1, 3))], [Exists(LeaderRow, (1,))])
    found = await store.read(LeaderRow, (1,))
    assert found is not None
    assert found.row.leader_epoch == 3


async def test_a_failed_precondition_writes_nothing_and_shows_the_row_as_it_is(
    store: Store,
) -> None:
    (version,) = await store.commit([Put(leader(1))])
    stale = VersionIs(LeaderRow, (1,), version - 1)
    with pytest.raises(PreconditionFailed) as caught:
        await store.commit([Put(leader(2)), Put(leader(1, 7))], [stale])
    assert caught.value.precondition == stale
    assert caught.value.current == Versioned(leader(1), version)
    assert await store.read(LeaderRow, (2,)) is None


async def test_the_first_precondition_that_fails_is_the_one_reported(store: Store) -> None:
    await store.commit([Put(leader(1))])
    holding, first, second = (
        Exists(LeaderRow, (1,)),
        Exists(LeaderRow, (2,)),
        Absent(LeaderRow, (1,)),
    )
    with pytest.raises(PreconditionFailed) as caught:
        await store.commit([Put(leader(3))], [holding, first, second])
    assert caught.value.precondition == first
    assert caught.value.current is None


async def test_a_version_does_not_hold_for_a_row_that_is_gone(store: Store) -> None:
    (version,) = await store.commit([Put(leader(1))])
    await store.commit([Delete(LeaderRow, (1,))])
    with pytest.raises(PreconditionFailed):
        await store.commit([Put(leader(1))], [VersionIs(LeaderRow, (1,), version)])


async def test_a_scan_gives_the_rows_under_a_prefix_in_key_order(store: Store) -> None:
    rows = [progress(group, part) for group in (2, 10, 1) for part in (3, 0, 11)]
    await store.commit([Put(row) for row in rows])
    found = await store.scan(ProgressRow, (10,))
    assert [(each.row.group_id, each.row.partition) for each in found] == [
        (10, 0),
        (10, 3),
        (10, 11),
    ]
    assert [each.row.group_id for each in await store.scan(ProgressRow)] == [1] * 3 + [2] * 3 + [
        10
    ] * 3
    assert await store.scan(ProgressRow, (3,)) == []
    assert len(await store.scan(ProgressRow, (1, 1, 3))) == 1


async def test_a_scan_goes_on_after_a_key_and_stops_at_its_limit(store: Store) -> None:
    await store.commit([Put(progress(group, part)) for group in (1, 2) for part in range(5)])
    page = await store.scan(ProgressRow, (1,), after=(1, 1, 1), limit=2)
    assert [each.row.partition for each in page] == [2, 3]
    rest = await store.scan(ProgressRow, (1,), after=(1, 1, 3), limit=100)
    assert [(each.row.group_id, each.row.partition) for each in rest] == [(1, 4)]
    across = await store.scan(ProgressRow, after=(1, 1, 4), limit=1)
    assert [each.row.group_id for each in across] == [2]


async def test_text_and_bytes_are_ordered_by_their_bytes(store: Store) -> None:
    names = ["b", "a", "Z", "ä", "a\x00", "", "\U0001f40d", "\uffff"]
    await store.commit([Put(TopicNameRow(name, 1)) for name in names])
    found = [each.row.name for each in await store.scan(TopicNameRow)]
    assert found == sorted(names, key=str.encode)
    ids = [b"\xff", b"", b"a", b"a\x00", b"B"]
    await store.commit([Put(SubscriptionRow(id_, 1, "f", 1)) for id_ in ids])
    assert [each.row.session_id for each in await store.scan(SubscriptionRow)] == sorted(ids)


async def test_all_pages_together_give_every_row(store: Store) -> None:
    await store.commit([Put(progress(1, part)) for part in range(25)])
    for page_rows in (1, 5, 24, 25, 26):
        found = await scan_all(store, ProgressRow, (1,), page_rows=page_rows)
        assert [each.row.partition for each in found] == list(range(25))


async def test_ids_are_never_given_twice(store: Store) -> None:
    given = await asyncio.gather(*(store.next_id() for _ in range(100)))
    assert len(set(given)) == 100
    assert await store.next_id() > max(given)


async def test_the_last_id_is_the_newest_that_was_given(store: Store) -> None:
    assert await store.last_id() == 0
    given = [await store.next_id() for _ in range(3)]
    assert await store.last_id() == given[-1]
    await store.commit([Put(leader(1))])
    assert await store.last_id() == given[-1]


async def test_ids_stay_small_however_many_versions_were_given(store: Store) -> None:
    # A storage topic's id must fit the 32 bits that frames have for it.
    await store.commit([Put(progress(1, part)) for part in range(1_000)])
    assert await store.next_id() == 1


async def test_concurrent_commits_lose_no_update(store: Store) -> None:
    """List append: every append that was acknowledged is in the list, once, in version order."""
    acknowledged: list[tuple[int, str]] = []
    beaten_by: list[Versioned[Row] | None] = []

    async def append(worker: int) -> None:
        for number in range(20):
            item = f"{worker}.{number}"
            while True:
                (entry,) = await store.scan(SubscriptionRow, (b"list", 0))
                row = SubscriptionRow(b"list", 0, f"{entry.row.filter} {item}", 0)
                only_if = VersionIs(SubscriptionRow, (b"list", 0), entry.version)
                try:
                    (version,) = await store.commit([Put(row)], [only_if])
                except PreconditionFailed as failed:
                    beaten_by.append(failed.current)
                    continue
                acknowledged.append((version, item))
                break

    await store.commit([Put(SubscriptionRow(b"list", 0, "", 0))])
    await asyncio.gather(*(append(worker) for worker in range(10)))
    found = await store.read(SubscriptionRow, (b"list", 0))
    assert found is not None
    assert found.row.filter.split() == [item for _, item in sorted(acknowledged)]
    assert len(acknowledged) == 200
    assert {type(current) for current in beaten_by} <= {Versioned}


async def test_only_one_of_many_claims_wins(store: Store) -> None:
    claims = [store.commit([Put(leader(1, at))], [Absent(LeaderRow, (1,))]) for at in range(50)]
    outcomes = await asyncio.gather(*claims, return_exceptions=True)
    won = [at for at, outcome in enumerate(outcomes) if isinstance(outcome, list)]
    found = await store.read(LeaderRow, (1,))
    assert found is not None
    assert won == [found.row.leader_epoch]
    lost = [outcome for outcome in outcomes if isinstance(outcome, PreconditionFailed)]
    assert len(lost) == 49
    assert {failed.current for failed in lost} == {found}


async def test_a_watcher_sees_the_changes_of_its_kind_in_commit_order(store: Store) -> None:
    watch = store.watch(LeaderRow)
    (first,) = await store.commit([Put(leader(1))])
    await store.commit([Put(progress(1, 1))])
    with pytest.raises(PreconditionFailed):
        await store.commit([Put(leader(2))], [Exists(LeaderRow, (2,))])
    second, third = await store.commit([Put(leader(1, 2)), Delete(LeaderRow, (1,))])
    await store.close()
    assert [change async for change in watch] == [
        Change(LeaderRow, (1,), leader(1), first),
        Change(LeaderRow, (1,), leader(1, 2), second),
        Change(LeaderRow, (1,), None, third),
    ]


async def test_a_watcher_sees_nothing_from_before_it_came(store: Store) -> None:
    await store.commit([Put(leader(1))])
    watch = store.watch(LeaderRow)
    await store.commit([Put(leader(2))])
    assert (await anext(watch)).key == (2,)


async def test_a_watcher_is_not_told_of_a_row_that_was_not_there_to_delete(store: Store) -> None:
    watch = store.watch(LeaderRow)
    await store.commit([Delete(LeaderRow, (1,)), Put(leader(2)), Delete(LeaderRow, (3,))])
    await store.close()
    assert [change.key async for change in watch] == [(2,)]


async def test_a_watcher_that_waits_is_woken_by_a_commit(store: Store) -> None:
    watch = store.watch(LeaderRow)

    async def next_change() -> Change:
        return await anext(watch)

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(next_change(), name="watcher")
        await asyncio.sleep(0)
        await store.commit([Put(leader(4))])
    assert waiting.result().row == leader(4)


async def test_a_watcher_that_falls_behind_is_told_so(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.store.commit_listeners.STORE_CHANGES_WAITING_MAX", 10)
    slow, quick = store.watch(LeaderRow), store.watch(LeaderRow)
    for at in range(11):
        await store.commit([Put(leader(at))])
        assert (await anext(quick)).key == (at,)
    with pytest.raises(ListenerFellBehind, match="LeaderRow left 10 changes"):
        await anext(slow)


async def test_a_closed_store_refuses_what_comes_later(store: Store) -> None:
    await store.close()
    for call in (
        store.commit([Put(leader(1))]),
        store.read(LeaderRow, (1,)),
        store.scan(LeaderRow),
        store.next_id(),
    ):
        with pytest.raises(Stopping):
            await call
    await store.close()


@pytest.mark.parametrize("key", [(), (1, 2)])
async def test_a_key_of_the_wrong_length_is_a_programmer_error(
    store: Store, key: tuple[int, ...]
) -> None:
    with pytest.raises(AssertionError):
        await store.read(LeaderRow, key)
    with pytest.raises(AssertionError):
        await store.commit([Delete(LeaderRow, key)])


async def test_a_row_goes_along_with_each_commit_of_a_call_until_it_is_over(store: Store) -> None:
    with along(leader(7)) as going:
        with pytest.raises(PreconditionFailed):
            await store.commit([Put(progress(1, 0))], [Exists(LeaderRow, (1,))])
        assert not going.is_durable
        assert await store.read(LeaderRow, (7,)) is None
        later = asyncio.Event()
        work = asyncio.create_task(committed_after(later, store))
        versions = await store.commit([Put(progress(1, 0))])
        assert (len(versions), going.is_durable) == (1, True)
    assert await store.read(LeaderRow, (7,)) is not None
    await store.commit([Delete(LeaderRow, (7,))])
    later.set()
    await work
    assert await store.read(LeaderRow, (7,)) is None, "tasks that it began take it no further"


async def committed_after(event: asyncio.Event, store: Store) -> None:
    await event.wait()
    await store.commit([Put(progress(1, 1))])

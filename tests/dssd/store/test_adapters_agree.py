"""The same commands to both adapters, the same answers, also across restarts."""

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from dssd.store.memory import MemoryStore
from dssd.store.port import (
    Absent,
    Change,
    Delete,
    Exists,
    Key,
    Precondition,
    PreconditionFailed,
    Put,
    Store,
    VersionIs,
    Write,
)
from dssd.store.rows import GroupNameRow, ProgressRow, Row, SessionRow
from dssd.store.sqlite import SqliteStore
from support.proof_share import share

NAMES = st.sampled_from(["", "a", "b", "é", "\U0001f40d"])
SMALL = st.integers(0, 2)
ANY_INT = st.integers(-(2**63), 2**63 - 1)

ROWS: st.SearchStrategy[Row] = st.one_of(
    st.builds(
        GroupNameRow,
        name=NAMES,
        filter=NAMES,
        group_id=ANY_INT,
        destroyed_at_ms=st.none() | ANY_INT,
    ),
    st.builds(
        ProgressRow,
        group_id=SMALL,
        storage_topic_id=SMALL,
        partition=SMALL,
        floor=ANY_INT,
        ranges=st.binary(max_size=20),
        frontier=ANY_INT,
        attempts=st.binary(max_size=20),
        finished=st.booleans(),
        cursor_generation=SMALL,
    ),
    st.builds(
        SessionRow,
        client_id=NAMES,
        session_id=st.binary(max_size=4),
        session_epoch=SMALL,
        expiry_ms=SMALL,
        disconnected_at_ms=st.none() | SMALL,
        principal=NAMES,
    ),
)
KEYS: st.SearchStrategy[tuple[type[Row], Key]] = st.one_of(
    st.tuples(st.just(GroupNameRow), st.tuples(NAMES, NAMES)),
    st.tuples(st.just(ProgressRow), st.tuples(SMALL, SMALL, SMALL)),
    st.tuples(st.just(SessionRow), st.tuples(NAMES)),
)
WRITES: st.SearchStrategy[Write] = st.builds(Put, ROWS) | KEYS.map(lambda named: Delete(*named))
PRECONDITIONS: st.SearchStrategy[Precondition] = st.one_of(
    KEYS.map(lambda named: Absent(*named)),
    KEYS.map(lambda named: Exists(*named)),
    st.tuples(KEYS, st.integers(1, 40)).map(
        lambda drawn: VersionIs(drawn[0][0], drawn[0][1], drawn[1])
    ),
)
COMMITS = st.tuples(st.lists(WRITES, max_size=6), st.lists(PRECONDITIONS, max_size=2))
Parts = tuple[list[Write], list[Precondition]]
Named = tuple[type[Row], Key]


@dataclass(frozen=True)
class Commits:
    together: list[Parts]

    async def on(self, store: Store) -> object:
        return await asyncio.gather(*(self.one(store, parts) for parts in self.together))

    async def one(self, store: Store, parts: Parts) -> object:
        try:
            return await store.commit(*parts)
        except PreconditionFailed as failed:
            return failed.precondition, failed.current


@dataclass(frozen=True)
class Read:
    named: Named

    async def on(self, store: Store) -> object:
        return await store.read(*self.named)


@dataclass(frozen=True)
class Scan:
    named: Named
    prefix: int
    after: bool
    limit: int

    async def on(self, store: Store) -> object:
        kind, key = self.named
        after = key if self.after else None
        return await store.scan(kind, key[: self.prefix], after=after, limit=self.limit)


@dataclass(frozen=True)
class NextId:
    async def on(self, store: Store) -> object:
        return await store.next_id()


@dataclass(frozen=True)
class Restart:
    """Of the adapter that outlives it."""


Command = Commits | Read | Scan | NextId | Restart
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(Commits, st.lists(COMMITS, min_size=1, max_size=5)),
    st.builds(Read, KEYS),
    st.builds(Scan, KEYS, st.integers(0, 3), st.booleans(), st.integers(1, 4)),
    st.just(NextId()),
    st.just(Restart()),
)


async def compare(commands: list[Command], path: Path) -> None:
    memory, sqlite = MemoryStore(), await SqliteStore.open(path)
    expected = memory.watch(ProgressRow)
    seen: list[Change] = []
    watch = sqlite.watch(ProgressRow)
    for command in commands:
        if isinstance(command, Restart):
            await sqlite.close()
            seen += [change async for change in watch]
            sqlite = await SqliteStore.open(path)
            watch = sqlite.watch(ProgressRow)
        else:
            assert await command.on(memory) == await command.on(sqlite), command
    await sqlite.close()
    await memory.close()
    seen += [change async for change in watch]
    assert seen == [change async for change in expected]


@settings(deadline=None, max_examples=share(20, 120))
@given(st.lists(COMMANDS, max_size=12))
def test_both_adapters_answer_alike(commands: list[Command]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(compare(commands, Path(directory) / "store.sqlite"))

"""The parts of a daemon above a data directory, opened and closed in its order, without a server.

Invariant: the same code does the same to the disk as when a daemon starts.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dss_sim.played_groups import QUICK
from dssd.clock import Clock
from dssd.data_directory import DataDirectory
from dssd.leaders.groups import Groups
from dssd.leaders.reached_offsets import reached_offsets
from dssd.leaders.registry import Registry
from dssd.log.segment_log import SegmentLog
from dssd.log.settings import LogSettings
from dssd.sessions.sessions import Sessions
from dssd.store.paging import scan_all
from dssd.store.rows import StorageTopicRow
from dssd.store.sqlite import SqliteStore
from dssd.topics.catalogue import Catalogue

DATA = "data"
"""The data directory's name below the root of a run."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The open parts."""

    store: SqliteStore
    log: SegmentLog
    catalogue: Catalogue
    groups: Groups
    registry: Registry
    sessions: Sessions


@asynccontextmanager
async def opened(
    root: Path,
    settings: LogSettings | None = None,
    *,
    failed: Callable[[BaseException], None],
) -> AsyncIterator[Parts]:
    """The parts above ``root/data``, which is created if it does not exist.

    ``failed`` is called with what ends a daemon: from then on some calls never return.

    Raises:
        DssError, OSError: as the daemon would when it starts.
    """
    clock = Clock()
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(DataDirectory(root / DATA))
        store = await SqliteStore.open(directory.store_path, on_failure=failed)
        stack.push_async_callback(store.close)
        log = await SegmentLog.open(
            directory.log_path,
            store,
            storage_topics=[found.row for found in await scan_all(store, StorageTopicRow)],
            ask_reached=partial(reached_offsets, store),
            on_failure=failed,
            settings=settings,
        )
        stack.push_async_callback(log.close)
        catalogue = await Catalogue.open(store, log, wall_ms=clock.wall_ms)
        groups = await Groups.open(store, catalogue, log, clock)
        registry = Registry(store, groups, catalogue, log, clock, timing=QUICK)
        await stack.enter_async_context(registry)
        sessions = await Sessions.open(store, catalogue, log, groups, registry, clock)
        await stack.enter_async_context(sessions)
        yield Parts(store, log, catalogue, groups, registry, sessions)

"""1,000 commits at once, one in ten with a precondition that fails; prints what came of them."""

import asyncio
import json
import sys
from pathlib import Path

from dssd.store.port import Absent, PreconditionFailed, Put, Versioned, VersionIs
from dssd.store.rows import LeaderRow
from dssd.store.sqlite import SqliteStore

COMMITS = 1_000
TAKEN = COMMITS


def row(group_id: int, epoch: int) -> LeaderRow:
    return LeaderRow(group_id=group_id, boot_id=b"", leader_epoch=epoch, beat=0)


async def main(path: Path) -> None:
    store = await SqliteStore.open(path)
    (taken,) = await store.commit([Put(row(TAKEN, 1))])

    async def commit(at: int) -> object:
        fails = at % 10 == 0
        only_if = VersionIs(LeaderRow, (TAKEN,), taken - 1 if fails else taken)
        try:
            return await store.commit([Put(row(at, at))], [only_if, Absent(LeaderRow, (at,))])
        except PreconditionFailed as failed:
            return failed.current == Versioned(row(TAKEN, 1), taken)

    outcomes = await asyncio.gather(*(commit(at) for at in range(COMMITS)))
    written = {found.row.group_id: found.version for found in await store.scan(LeaderRow)}
    await store.close()
    sys.stdout.write(json.dumps({"outcomes": outcomes, "written": list(written.items())}))


asyncio.run(main(Path(sys.argv[1])))

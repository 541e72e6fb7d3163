"""Commits one after another on a disk that fails meanwhile; prints what came of each."""

import asyncio
import json
import sys
from pathlib import Path

from dss_core.errors import DssError
from dssd.store.port import Put
from dssd.store.rows import LeaderRow
from dssd.store.sqlite import SqliteStore


async def main(path: Path, commits: int) -> None:
    failures: list[BaseException] = []
    store = await SqliteStore.open(path, on_failure=failures.append)
    outcomes: list[str] = []
    reads: list[str] = []
    for at in range(commits):
        row = LeaderRow(group_id=at, boot_id=b"x" * 3_000, leader_epoch=1, beat=0)
        try:
            await store.commit([Put(row)])
            outcomes.append("ok")
        except DssError as error:
            outcomes.append(error.code)
        try:
            reads.append("ok" if await store.read(LeaderRow, (0,)) else "absent")
        except DssError as error:
            reads.append(error.code)
    told = [
        failure.message if isinstance(failure, DssError) else repr(failure) for failure in failures
    ]
    sys.stdout.write(json.dumps({"outcomes": outcomes, "reads": reads, "told": told}))
    if not failures:
        await store.close()


asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))

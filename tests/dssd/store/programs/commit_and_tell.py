"""Commits from several tasks, and prints each after it was acknowledged, until killed."""

import asyncio
import os
import sys
from pathlib import Path

from dssd.store.port import Put
from dssd.store.rows import LeaderRow
from dssd.store.sqlite import SqliteStore


async def main(path: Path, tasks: int, commits: int) -> None:
    store = await SqliteStore.open(path)

    async def commit_on(task: int) -> None:
        for epoch in range(1, commits + 1):
            row = LeaderRow(group_id=task, boot_id=b"x" * 100, leader_epoch=epoch, beat=0)
            (version,) = await store.commit([Put(row)])
            id_ = await store.next_id() if epoch % 7 == 0 else 0
            os.write(1, f"acknowledged {task} {epoch} {version} {id_}\n".encode())

    async with asyncio.TaskGroup() as group:
        for task in range(tasks):
            group.create_task(commit_on(task), name=f"committer {task}")
    await store.close()


asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))

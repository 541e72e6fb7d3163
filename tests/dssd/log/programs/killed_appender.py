"""Appends numbered frames until the process kills itself right after a sync, before any reply.

Arguments: directory, how many frames were appended before this one, the sync after which to die,
and whether to roll the segment before the last frame; or ``unsynced`` in place of that: then the
frames need not be durable, and it dies right after the last reply.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.ids import StreamId
from dssd.log.port import Append, Appended
from dssd.log.segment_log import SegmentLog
from dssd.store.port import Put
from dssd.store.rows import StorageTopicRow
from dssd.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

TOPIC = 7
PRODUCER = b"producer of test"


def numbered_frame(sequence: int) -> bytes:
    columns = Columns(payloads=[b"record %d" % sequence], subjects="orders")
    return build_frame(columns, partition=0, producer_id=PRODUCER, sequence=sequence)


async def open_log(directory: Path) -> tuple[SqliteStore, SegmentLog]:
    store = await SqliteStore.open(directory / "store.db")
    row = StorageTopicRow(1, 0, TOPIC, 1, 1, None, "0")
    await store.commit([Put(row)])
    log = await SegmentLog.open(
        directory / "log", store, storage_topics=[row], on_failure=lambda error: os._exit(74)
    )
    return store, log


async def main(directory: Path, frames: int, roll_before_last: bool) -> None:
    _, log = await open_log(directory)
    for sequence in range(frames):
        if sequence == frames - 1:
            if roll_before_last:
                await log.roll(TOPIC)
            die_after_next_sync()
        await log.append([Append(StreamId(TOPIC, 0), numbered_frame(sequence), 1)])
        sys.stdout.write(f"{sequence}\n")
        sys.stdout.flush()


async def main_unsynced(directory: Path, frames: int) -> None:
    _, log = await open_log(directory)
    for sequence in range(frames):
        append = Append(StreamId(TOPIC, 0), numbered_frame(sequence), 1, "os")
        (answer,) = await log.append([append])
        assert isinstance(answer, Appended)
        sys.stdout.write(f"{answer.base_offset}\n")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def die_after_next_sync() -> None:
    usual = os.fdatasync

    def sync_and_die(fd: "FileDescriptorLike") -> None:
        usual(fd)
        os.kill(os.getpid(), signal.SIGKILL)

    os.fdatasync = sync_and_die


if __name__ == "__main__":
    where, count, ending = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    if ending == "unsynced":
        asyncio.run(main_unsynced(where, count))
    else:
        asyncio.run(main(where, count, ending == "roll"))

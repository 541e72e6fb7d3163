"""Brings staged files to a daemon that is not on this host.

Invariant: bytes that the daemon has are not sent again, so a lost connection costs only those on
their way; a file is complete once the daemon says that it has all of its bytes.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from xxhash import xxh3_64_intdigest

from dss_api.v1 import jobs_pb2
from dss_client._connection import ConnectionLostError
from dss_core.staged import STAGE_PIECE_BYTES, StagedFile

if TYPE_CHECKING:
    from dss_client._connection import Connection


async def bring(
    connection: "Connection", job: str, epoch: int, folder: Path, file: StagedFile
) -> None:
    """Bring a file, or the rest of it.

    Raises:
        JobFenced, JobNotInState, JobNotFound: the driver has to stop.
        StagedFileRefused: the daemon does not take it.
        OutcomeUnknown, Unreachable: the connection was lost; the next call goes on.
    """
    call = connection.jobs.Stage()
    try:
        begin = jobs_pb2.StageBegin(epoch=epoch, name=file.name, bytes=file.bytes)
        await connection.write(call, jobs_pb2.StageUp(job=job, begin=begin))
        there: int = (await connection.read(call)).bytes
        if there == file.bytes:
            return
        # If the daemon ends the call with an error, reading returns it, and writing does not.
        with (folder / file.name).open("rb") as opened, suppress(ConnectionLostError):
            async for piece in _pieces(opened, there):
                await connection.write(call, jobs_pb2.StageUp(piece=piece))
        await connection.read(call)
    except ConnectionLostError as lost:
        raise lost.reason from lost
    finally:
        call.cancel()


async def _pieces(file: BinaryIO, offset: int) -> AsyncIterator[jobs_pb2.StagePiece]:
    file.seek(offset)
    while data := await asyncio.to_thread(file.read, STAGE_PIECE_BYTES):
        yield jobs_pb2.StagePiece(offset=offset, data=data, checksum=xxh3_64_intdigest(data))
        offset += len(data)

"""Where the daemon keeps the records of a range: files, and places in them.

A program that can read these files need not have the records sent. Invariant: a run comes with the
checksum of its bytes, so a reader that finds other bytes, such as a file of another machine,
notices. No wire message leaves this module, and it opens no file.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dss_api.v1 import log_pb2
    from dss_client._connection import Connection
    from dss_client.job_values import SourceRange


class StoredRun(NamedTuple):
    """Consecutive frames of one stream, adjacent in a file."""

    base: int
    """The offset of the first record."""
    end: int
    """The offset after the last one."""
    position: int
    length: int
    checksum: int
    """xxh3-64 of the bytes."""


@dataclass(frozen=True, slots=True)
class StoredRuns:
    """Runs of one file that follow each other without a missing offset."""

    path: str
    """On the daemon's machine."""
    runs: tuple[StoredRun, ...]


async def stored_runs(
    connection: "Connection", wanted: "SourceRange", dead_letters: str = ""
) -> AsyncGenerator[StoredRuns, None]:
    """The runs of a range, without a gap from its start on, up to its end or to what is missing.

    Raises:
        StreamNotFound: there is no such stream in this storage topic.
        DssError: the daemon refuses, or the connection was lost.
    """
    from dss_api.v1 import log_pb2

    at = wanted.start
    while at < wanted.end:
        request = log_pb2.RunsRequest(
            stream=wanted.stream,
            storage_topic_id=wanted.storage_topic_id,
            start=at,
            end=wanted.end,
            dead_letters=dead_letters,
        )
        files = (await connection.ask(connection.log.Runs, request)).files
        if not files:
            return
        for each in map(_from_wire, files):
            at = each.runs[-1].end
            yield each


def _from_wire(message: "log_pb2.FileRuns") -> StoredRuns:
    bases = [message.base, *message.ends[:-1]]
    columns = (bases, message.ends, message.positions, message.lengths, message.checksums)
    return StoredRuns(message.path, tuple(map(StoredRun, *columns)))

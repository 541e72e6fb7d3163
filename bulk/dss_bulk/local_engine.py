"""The engine that does all work in this process: no cluster, no JVM, one task at a time.

Invariant: a chunk gets the same result as from the engine on Spark, so either engine can continue a
job of the other.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dss_bulk.in_turn import InTurn
from dss_bulk.work import Work
from dss_client import Client
from dss_client.job_values import Granted, Job
from dss_core.errors import IllegalJob

LOCAL_CHUNKS_AT_ONCE = 2
"""How many chunks the local engine stages at once: while the daemon takes one in, the next is
staged. More would wait, and each takes its space on the disk."""


class LocalEngine:
    """Works in this process."""

    name = "local engine"
    chunks_at_once = LOCAL_CHUNKS_AT_ONCE

    def __init__(self, *, in_place: bool = True) -> None:
        self._in_place = in_place
        """Whether files of the daemon are read if they may be opened; else the daemon sends
        everything."""

    @asynccontextmanager
    async def opened(self, job: Job) -> AsyncIterator[None]:
        """It needs nothing."""
        yield

    def work_of(self, client: Client, granted: Granted) -> Work:
        """The work of a job's kind.

        Raises:
            DssError: its parameters are not usable.
        """
        return InTurn(self._of_kind(client, granted))

    def _of_kind(self, client: Client, granted: Granted) -> Work:
        # Each kind is loaded for its own jobs: all together would take a fifth of a start.
        match granted.job.kind:
            case "replay":
                from dss_bulk.replay_work import ReplayWork

                return ReplayWork(client, granted, in_place=self._in_place)
            case "export":
                from dss_bulk.export_work import ExportWork

                return ExportWork(client, granted, in_place=self._in_place)
            case "backfill":
                from dss_bulk.backfill_work import BackfillWork

                return BackfillWork(granted)
            case "audit":
                from dss_bulk.audit_work import AuditWork

                return AuditWork(client, granted, in_place=self._in_place)
            case kind:
                raise IllegalJob(job=granted.job.name, rule=f"the local engine makes no {kind}")


LOCAL = LocalEngine()

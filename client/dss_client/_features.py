"""What a daemon has to know before it is asked for it: it passes over what it does not.

Invariant: where it does not know it, nothing was asked.
"""

from typing import TYPE_CHECKING

from dss_client.changes import Change, EditGroup
from dss_core.errors import DaemonKnowsNoQueues
from dss_core.lane import QUEUES

if TYPE_CHECKING:
    from dss_client._connection import Connection


def needs_queues(change: Change) -> bool:
    """Whether a daemon that knows no queues would pass over a part of it."""
    if not isinstance(change, EditGroup):
        return False
    numbers = (change.max_deliver, change.queue_records, change.queue_bytes)
    return bool(change.backoff_ms) or any(each is not None for each in numbers)


async def check_knows_queues(connection: "Connection") -> None:
    """Ask the daemon whether it knows them.

    Raises:
        DaemonKnowsNoQueues: it does not.
    """
    from dss_api.v1 import daemon_pb2

    status = await connection.ask(connection.daemon.Status, daemon_pb2.DaemonStatusRequest())
    if QUEUES not in status.features:
        raise DaemonKnowsNoQueues(version=status.version)

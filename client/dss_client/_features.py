"""Features that a daemon must have before a request uses them; an older daemon would ignore them.

Invariant: a request that needs a missing feature is not sent.
"""

from typing import TYPE_CHECKING

from dss_client.changes import (
    Change,
    CreateJob,
    DiscardDeadLetters,
    EditGroup,
    GrowTopic,
    RedriveDeadLetters,
    SetShardCount,
)
from dss_core.errors import (
    DaemonKnowsNoMetadata,
    DaemonKnowsNoOrder,
    DaemonKnowsNoQueues,
    DaemonKnowsNoShards,
    DaemonKnowsNoSteering,
    DaemonReadsNoDeadLetters,
    DssError,
)
from dss_core.lane import DEAD_LETTERS, METADATA, ORDERED, QUEUES, SHARDS, STEERED

if TYPE_CHECKING:
    from dss_api.v1 import groups_pb2
    from dss_client._connection import Connection


def needed_for(change: Change) -> str:
    """The feature without which a daemon would ignore a part of the change; empty: none is
    needed."""
    if isinstance(change, RedriveDeadLetters | DiscardDeadLetters):
        return _needed_to_choose(change)
    if isinstance(change, CreateJob):
        return DEAD_LETTERS if change.dead_letters else ""
    if isinstance(change, SetShardCount) or (isinstance(change, GrowTopic) and change.with_shards):
        return SHARDS
    if not isinstance(change, EditGroup):
        return ""
    if change.ordered or change.on_dead_letter or change.keyless:
        return ORDERED
    numbers = (change.max_deliver, change.queue_records, change.queue_bytes)
    says = bool(change.backoff_ms) or any(each is not None for each in numbers)
    return QUEUES if says else ""


def _needed_to_choose(change: RedriveDeadLetters | DiscardDeadLetters) -> str:
    if change.client_id or change.start_us is not None or change.end_us is not None:
        return STEERED
    if isinstance(change, DiscardDeadLetters):
        return ""
    if change.canary is not None:
        return STEERED
    return ORDERED if change.unordered else ""


def needed_for_group(request: "groups_pb2.CreateGroupRequest") -> str:
    """The feature without which a daemon would make another group; empty: none is needed."""
    if request.HasField("shards") or request.allocation:
        return SHARDS  # the newest: a daemon that knows it knows the others
    if request.metadata or request.unused_ms:
        return METADATA
    if request.ordered or request.on_dead_letter or request.keyless:
        return ORDERED
    says = bool(request.max_deliver or request.backoff_ms)
    says = says or request.HasField("queue_records") or request.HasField("queue_bytes")
    return QUEUES if says else ""


async def check_knows(connection: "Connection", feature: str) -> None:
    """Check that the daemon has the feature; an empty one needs no check.

    Raises:
        DaemonKnowsNoQueues, DaemonKnowsNoOrder, DaemonKnowsNoSteering, DaemonReadsNoDeadLetters,
            DaemonKnowsNoMetadata, DaemonKnowsNoShards: it does not.
    """
    from dss_api.v1 import daemon_pb2

    if not feature:
        return
    status = await connection.ask(connection.daemon.Status, daemon_pb2.DaemonStatusRequest())
    for known in (QUEUES, feature):
        if known not in status.features:
            raise _LACKS[known](version=status.version)


_LACKS: dict[str, type[DssError]] = {
    QUEUES: DaemonKnowsNoQueues,
    ORDERED: DaemonKnowsNoOrder,
    STEERED: DaemonKnowsNoSteering,
    METADATA: DaemonKnowsNoMetadata,
    SHARDS: DaemonKnowsNoShards,
    DEAD_LETTERS: DaemonReadsNoDeadLetters,
}

"""A retry queue as a stream of the delivery window.

Invariant: every entry is a redelivery, so no cursor reads the stream, and no frontier applies. This
module must not know when an entry is due.
"""

from dataclasses import replace

from dss_core.lane import RETRY
from dssd.machines.delivery.events import Installed
from dssd.machines.delivery.retry import Resting
from dssd.machines.delivery.stream import NEVER_HELD, DeliveredStream
from dssd.machines.messages import GrantedStream


def retry_stream(
    installed: Installed, credit_records: int, resting: Resting, now_ms: int
) -> DeliveredStream:
    """The retry queue of a lane that is lent."""
    queue = installed.granted.queues[RETRY - 1]
    granted = GrantedStream(
        queue.stream,
        installed.granted.grant_epoch,
        queue.progress,
        frontier=NEVER_HELD,
        attempts=queue.attempts,
        suspect_end=0,
        fate=queue.fate,
    )
    given = replace(installed, grant=installed.grant + RETRY, granted=granted, policy=None)
    stream = DeliveredStream(given, credit_records, resting, now_ms)
    stream.level = RETRY
    stream.cursor = stream.records.sent = stream.records.frontier = NEVER_HELD
    stream.at_tail = True
    return stream

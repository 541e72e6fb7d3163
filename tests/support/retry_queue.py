"""Deliveries of a retry queue, as a client gets them, without a daemon."""

from collections.abc import Sequence

from dss_api.lane_entries import entry_bytes
from dss_api.v1 import sessions_pb2
from dss_client.testing import MemoryDaemon
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.frame import stamped
from dss_core.lane import ENTRIES, ERROR_HEADER, LANE_HEADER, LaneEntry


def entry(offset: int, *, attempt: int = 1, error_type: str = "") -> LaneEntry:
    """The entry of a record of ``t/0/0`` that failed this often."""
    return LaneEntry(0, offset, 0, 0, offset, 1_000 + offset, attempt, error_type=error_type)


def retried(
    base: int,
    entries: Sequence[LaneEntry],
    *,
    error: str | None = "no room",
    key: bytes | None = b"k",
    hand_outs: int = 2,
) -> sessions_pb2.Deliver:
    """Entries that lie in the queue from an offset on, under the first grant."""
    own = ((ERROR_HEADER, error.encode()),) if error is not None else ()
    headers = [
        (("a", b"1"), (LANE_HEADER, entry_bytes(each)), *own, ("b", b"2")) for each in entries
    ]
    payloads = [b"%d" % each.origin_offset for each in entries]
    frame = build_frame(
        Columns(payloads, [key] * len(entries), "t", headers, 5),
        partition=0,
        producer_id=b"q" * 16,
        sequence=0,
        limits=ENTRIES,
    )
    stamp = stamped(frame, base_offset=base, append_time_us=7, topic_epoch=1, storage_topic_id=9)
    return sessions_pb2.Deliver(
        grant=1, frames=stamp + frame[len(stamp) :], redelivered=True, attempt=hand_outs, level=1
    )


def settles_of_queue(daemon: MemoryDaemon) -> list[sessions_pb2.Settle]:
    """What was reported about the retry queue."""
    return [each for each in daemon.settles if each.level == 1]


def acked_in_queue(daemon: MemoryDaemon) -> list[int]:
    """The offsets that were acknowledged there."""
    ranges = [each for settle in settles_of_queue(daemon) for each in settle.acked]
    return sorted(at for each in ranges for at in range(each.start, each.end))

"""Records that were delivered under a grant and taken by a run, without a daemon."""

from collections.abc import Sequence

from dss_client import DeliveredRecord
from dss_client._grant import HeldGrant
from dss_client._handout import Handout
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.frame import stamped

Records = Sequence[DeliveredRecord]


def grant_of(number: int = 1) -> HeldGrant:
    """A grant whose events nobody gets."""
    return HeldGrant(
        number,
        subscription=1,
        stream="t/0/0",
        grant_epoch=1,
        floor=0,
        redelivered_below=0,
        touched=lambda grant, urgent: None,
    )


def taken(grant: HeldGrant, base: int, *keys: bytes | None, again: bool = False) -> Records:
    """Records of a delivery from ``base`` on, one for each key."""
    frame = build_frame(
        Columns([b"x"] * len(keys), list(keys), "t"),
        partition=0,
        producer_id=b"p" * 16,
        sequence=0,
    )
    stamp = stamped(frame, base_offset=base, append_time_us=7, topic_epoch=1, storage_topic_id=1)
    frames = stamp + frame[len(stamp) :]
    return list(Handout(grant, frames, (), redelivered=again, attempt=1 + again).take())

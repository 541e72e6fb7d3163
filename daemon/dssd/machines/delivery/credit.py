"""The credit of a session: how much may be out with its client, for all its streams together.

It counts what was sent, in records and bytes. Invariant: what is out is the sum of what the shares
of the subscriptions have out. This module knows no stream.
"""

from dssd.machines.delivery.fairness import Share
from dssd.machines.delivery.frame_plan import CreditLeft


class Credit:
    """What may be out, and what is."""

    __slots__ = ("bytes", "out_bytes", "out_records", "records")

    def __init__(self, records: int, size: int) -> None:
        self.records = records
        self.bytes = size
        self.out_records = 0
        self.out_bytes = 0

    @property
    def spent(self) -> bool:
        """Whether nothing more may go."""
        return self.out_records >= self.records or self.out_bytes >= self.bytes

    def left(self, share: Share, *, contended: bool) -> CreditLeft:
        """What a subscription may still take: half in all, where others wait and it has some."""
        records = self.records - self.out_records
        size = self.bytes - self.out_bytes
        if contended and share.records > 0:
            records = min(records, self.records // 2 - share.records)
            size = min(size, self.bytes // 2 - share.bytes)
        return CreditLeft(records, size)

    def take(self, share: Share, records: int, size: int) -> None:
        """A subscription has so much more out; negative: it gives back."""
        share.records += records
        share.bytes += size
        self.out_records += records
        self.out_bytes += size

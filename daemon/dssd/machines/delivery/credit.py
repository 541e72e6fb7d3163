"""The credit of a session: how much its client may have in flight, for all streams together.

It counts what was sent, in records and in bytes, each by the same rule:

- Half of the credit is divided among the subscriptions that hold a stream. The part of each is its
  *reserve*, which no other subscription can take. The other half goes to whoever asks first; a
  single subscription may take all.
- While a subscription has refused records, an eighth of the credit, divided likewise, is kept for
  redeliveries: new records leave it free, and redeliveries may exceed all other limits by so much.
  A client that waits for one record, and holds all others until then, gets it.

Frames are sent whole, so a subscription may exceed its reserve by less than one frame of new
records and less than one of redeliveries. A new subscription has its reserve even if all of the
credit is out. So the records out may exceed the credit by some reserves and frames. In bytes that
could cost too much: nothing more is sent once `OUT_BYTES_MAX` are out.

Invariant: ``claimed`` is the sum over the subscriptions of what each has out, or of its reserve
where that is more. This module knows no stream.
"""

from collections.abc import Iterable

from dssd.limits import OUT_BYTES_MAX
from dssd.machines.delivery.frame_plan import CreditLeft
from dssd.machines.delivery.retry import RestingCount

AGAIN_PART = 8
"""New records leave this part of the credit free while refused records wait to be sent again."""


RESERVED_PART = 2
"""Half of a session's credit is divided into the reserves of its subscriptions; the other half goes
to whichever has something to send."""


class Taken:
    """What one subscription has out, in records or in bytes."""

    __slots__ = ("again", "claim", "out")

    def __init__(self) -> None:
        self.out = 0
        self.again = 0
        """The part of ``out`` that was sent again."""
        self.claim = 0
        """What others cannot have."""


class Account:
    """What one subscription has out, and whether it has refused any."""

    __slots__ = ("bytes", "records", "resting")

    def __init__(self) -> None:
        self.records = Taken()
        self.bytes = Taken()
        self.resting = RestingCount()


class _Unit:
    """The credit in records or in bytes."""

    __slots__ = ("again_kept", "again_sure", "claimed", "most", "out", "reserve")

    def __init__(self, most: int) -> None:
        self.most = most
        self.out = 0
        self.claimed = 0
        self.reserve = 0
        self.again_kept = 0
        """How much new records of a subscription leave free for redeliveries."""
        self.again_sure = 0
        """How much may be redelivered whatever else is out."""

    def divide(self, accounts: list[Taken]) -> None:
        """Give each of these its reserve."""
        count = max(1, len(accounts))
        self.reserve = max(1, self.most // (RESERVED_PART * count))
        self.again_kept = self.most // (AGAIN_PART * count)
        self.again_sure = max(1, self.again_kept)
        self.claimed = 0
        for taken in accounts:
            taken.claim = max(self.reserve, taken.out)
            self.claimed += taken.claim

    def room(self, taken: Taken, *, again: bool, kept: bool) -> int:
        """How much more may be sent; ``kept``: room is kept for records that come again later."""
        free = max(self.reserve, self.most - self.claimed + taken.claim) - taken.out
        if again:
            return max(free, self.again_sure - taken.again)
        if kept and self.again_kept > taken.again:
            free -= self.again_kept - taken.again
        return free

    def take(self, taken: Taken, amount: int, again: int) -> None:
        """``amount`` more is out; ``again`` of it was sent again."""
        self.out += amount
        taken.out += amount
        taken.again += again
        claim = max(self.reserve, taken.out)
        self.claimed += claim - taken.claim
        taken.claim = claim


class Credit:
    """What may be out, and what is."""

    __slots__ = ("_accounts", "_bytes", "_records")

    def __init__(self, records: int, size: int) -> None:
        self._records = _Unit(records)
        self._bytes = _Unit(size)
        self._accounts: list[Account] = []

    @property
    def records(self) -> int:
        """How many records may be out."""
        return self._records.most

    @property
    def bytes(self) -> int:
        """How many bytes may be out."""
        return self._bytes.most

    @property
    def accounts(self) -> Iterable[Account]:
        """The account of each subscription that holds a stream; a caller must not change them."""
        return self._accounts

    @property
    def out_records(self) -> int:
        """How many records are out."""
        return self._records.out

    @property
    def out_bytes(self) -> int:
        """How many bytes are out."""
        return self._bytes.out

    def open(self, account: Account) -> None:
        """A subscription has its first stream: give it a reserve."""
        self._accounts.append(account)
        self._divide()

    def close(self, account: Account) -> None:
        """A subscription has lost its last stream, and has nothing out."""
        assert account.records.out == account.bytes.out == 0
        self._accounts.remove(account)
        self._divide()

    def _divide(self) -> None:
        self._records.divide([account.records for account in self._accounts])
        self._bytes.divide([account.bytes for account in self._accounts])

    def left(self, account: Account, *, again: bool) -> CreditLeft:
        """The credit that is left for a subscription: for new records, or for those sent again."""
        if self._bytes.out >= OUT_BYTES_MAX:
            return CreditLeft(0, 0)
        kept = account.resting.ranges > 0
        return CreditLeft(
            self._records.room(account.records, again=again, kept=kept),
            self._bytes.room(account.bytes, again=again, kept=kept),
        )

    def take(self, account: Account, records: int, size: int, *, again: bool) -> None:
        """A subscription was sent so much more; negative amounts give credit back."""
        self._records.take(account.records, records, records if again else 0)
        self._bytes.take(account.bytes, size, size if again else 0)

"""The state of a borrower of a lease group: what any borrower knows, and the version of its set.

Apart from `lease_machine` because `lease_messages`, which that module uses,
reads it too. Invariant: the version never falls.
"""

from dssd.machines.borrower.state import HeldStream, Holder
from dssd.machines.messages import BorrowerId, SessionId


class LeaseBorrower(Holder):
    """The state. Its `streams` are the set, and those that are taken over: they are `revoking`."""

    __slots__ = ("version", "version_old")

    def __init__(
        self, borrower_id: BorrowerId, session_id: SessionId, client_id: str, lease_ms: int
    ) -> None:
        super().__init__(borrower_id, session_id, client_id, lease_ms)
        self.version = 0
        """Of the stream set; 0 while there is none."""
        self.version_old = 0
        """While updating: of the set before."""

    def active(self) -> list[HeldStream]:
        """The streams of the set that nothing took over."""
        return [held for held in self.streams.values() if not held.revoking]

    def taken_over(self) -> list[HeldStream]:
        """The streams that are to be given back."""
        return [held for held in self.streams.values() if held.revoking]

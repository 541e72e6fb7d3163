"""What a leader of a lease group knows of its members' stream sets.

Apart from `stream_sets`, whose rules change it, because `state` holds it.
Invariant: a set whose version its member has not shown is the only one that is on its way to it.
"""

from dss_core.ids import StreamId
from dssd.machines.messages import BorrowerId, SessionId


class StreamSet:
    """What one member was told to hold, and what it showed to have."""

    __slots__ = (
        "accepted", "again", "changed", "durable", "forced", "heard_ms", "renew", "returned",
        "session_id", "shown", "since", "told", "version",
    )  # fmt: skip

    def __init__(self, session_id: SessionId, shown: int, heard_ms: int) -> None:
        self.session_id = session_id
        self.shown = shown
        """The version that the member is known to have; 0: none."""
        self.version = shown
        """The newest that was made for it."""
        self.since = 0
        """The version that the newest replaces; 0: none."""
        self.durable = True
        """The newest may be sent."""
        self.told: dict[StreamId, int] = {}
        """The streams of the newest, and their grant epochs."""
        self.changed = False
        """The set that the member should have is another than the newest."""
        self.forced = False
        """A version is wanted even if it holds the same streams."""
        self.heard_ms = heard_ms
        """The newest send time of the member's messages, on its clock."""
        self.again = False
        """At the end of the step the newest is sent, perhaps again."""
        self.renew = False
        """At the end of the step the lease is renewed."""
        self.returned: dict[StreamId, int] = {}
        """Streams that the member said are fully acked, and their grant epochs."""
        self.accepted: dict[StreamId, int] = {}
        """Those whose final progress is durable, until the member knows it."""


class StreamSets:
    """The stream sets of a group, and the counters of their versions."""

    __slots__ = ("by_member", "changed", "counters", "ended", "in_flight", "newcomers", "speaking")

    def __init__(self) -> None:
        self.by_member: dict[BorrowerId, StreamSet] = {}
        self.counters: dict[SessionId, int] = {}
        """The newest version of each session, as the next commit at the latest has it."""
        self.ended: dict[SessionId, None] = {}
        """Sessions without a member, whose counters are to be deleted."""
        self.newcomers: dict[BorrowerId, None] = {}
        """Members that get their first set, which may be empty, when shares are computed."""
        self.changed: dict[BorrowerId, None] = {}
        """Members whose next set may be made: nothing is on its way to them."""
        self.speaking: dict[BorrowerId, None] = {}
        """Members to whom something is said at the end of the step."""
        self.in_flight: tuple[BorrowerId, ...] = ()
        """Members whose new version the commit under way holds."""

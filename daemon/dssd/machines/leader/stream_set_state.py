"""The state of a lease group's leader about the stream sets of its members.

`stream_sets` has the rules that change it; `state` holds it, hence this module. Invariant: at most
one set is on its way to a member, the one whose version the member has not shown yet.
"""

from dss_core.ids import StreamId
from dssd.machines.messages import BorrowerId, SessionId


class StreamSet:
    """The set that one member was told to hold, and the version that it has shown."""

    __slots__ = (
        "accepted", "again", "changed", "durable", "forced", "heard_ms", "renew", "returned",
        "session_id", "shown", "since", "told", "version",
    )  # fmt: skip

    def __init__(self, session_id: SessionId, shown: int, heard_ms: int) -> None:
        self.session_id = session_id
        self.shown = shown
        """The version that the member is known to have; 0: none."""
        self.version = shown
        """The newest version that was made for it."""
        self.since = 0
        """The version that the newest one replaces; 0: none."""
        self.durable = True
        """The newest may be sent."""
        self.told: dict[StreamId, int] = {}
        """The streams of the newest version, and their grant epochs."""
        self.changed = False
        """The member should have another set than the newest version."""
        self.forced = False
        """A new version is needed even if it holds the same streams."""
        self.heard_ms = heard_ms
        """The newest send time of the member's messages, on its clock."""
        self.again = False
        """At the end of the step the newest version is sent, perhaps again."""
        self.renew = False
        """At the end of the step the lease is renewed."""
        self.returned: dict[StreamId, int] = {}
        """Streams that the member said are fully acked, and their grant epochs."""
        self.accepted: dict[StreamId, int] = {}
        """Taken-over streams whose final progress is durable, until the member knows it."""


class StreamSets:
    """The stream sets of a group, and the counters of their versions."""

    __slots__ = ("by_member", "changed", "counters", "ended", "in_flight", "newcomers", "speaking")

    def __init__(self) -> None:
        self.by_member: dict[BorrowerId, StreamSet] = {}
        self.counters: dict[SessionId, int] = {}
        """The newest version of each session; the next commit makes it durable."""
        self.ended: dict[SessionId, None] = {}
        """Sessions without a member, whose counters are to be deleted."""
        self.newcomers: dict[BorrowerId, None] = {}
        """Members that get their first set, which may be empty, when shares are computed."""
        self.changed: dict[BorrowerId, None] = {}
        """Members whose next set may be made: nothing is on its way to them."""
        self.speaking: dict[BorrowerId, None] = {}
        """Members to which a message is sent at the end of the step."""
        self.in_flight: tuple[BorrowerId, ...] = ()
        """Members whose new version the commit under way holds."""

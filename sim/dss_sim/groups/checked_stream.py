"""What the judge of a history knows of one stream, as one group consumes it.

Apart from `checker` and `cursor_rules`, whose rules change it. Invariant: `acked` holds only what
still counts, so nothing that was acknowledged before an operator moved the cursor is in it.
"""

from collections import defaultdict

from dss_core.progress import Progress
from dss_sim.groups.history import Key


class CheckedStream:
    """One stream as one group consumes it."""

    __slots__ = (
        "acked", "acked_us", "asked", "attempts", "counted", "doubt_end", "doubt_epoch", "durable",
        "first_below", "follows", "grant_epoch", "granted", "hand_epoch", "hand_member", "hands",
        "holes", "made", "marked", "moved_epoch", "open_epoch", "owed", "passed", "reopened",
        "rests", "settled", "start", "stored",
    )  # fmt: skip

    def __init__(self, start: int) -> None:
        self.start = start
        self.hands: dict[int, int] = {}
        """How often each offset was handed out."""
        self.counted: dict[int, int] = {}
        """How often since an operator reopened it, where one did."""
        self.first_below: defaultdict[Key, int] = defaultdict(lambda: start)
        """Behind the last offset that was handed out for the first time; by key where the group
        keeps that order, else all under None."""
        self.hand_epoch = 0
        self.hand_member = ""
        """The member of the newest grant that handed out."""
        self.follows = False
        """The grant before it handed out too; else it is not known whether it did."""
        self.attempts: dict[int, int] = {}
        """Of what that grant handed out, how it was counted last."""
        self.holes: list[tuple[int, int, int]] = []
        """Start and end of what is gone, and the newest grant that may have read it before."""
        self.asked: dict[int, tuple[str, int, int]] = {}
        """Offsets that shall rest: who asked, when, and until when."""
        self.rests: dict[int, int] = {}
        """Those of which that is durable: until when they rest."""
        self.acked_us: dict[int, int] = {}
        self.acked: set[int] = set()
        self.durable: set[int] = set()
        self.settled: set[int] = set()
        """What is stored as acknowledged because users did that, and was not reopened since."""
        self.stored = Progress(start)
        self.grant_epoch = 0
        self.granted = Progress(start)
        """What was stored when the newest grant was."""
        self.moved_epoch = 0
        """Older grants are of before an operator moved the cursor."""
        self.made: dict[int, tuple[Progress, Progress]] = {}
        """Before and after each move, by the number of its operation."""
        self.marked = 0
        """Below it a mark says no more than that an operator moved the cursor."""
        self.open_epoch = 0
        """A new leader cannot know how far records went out under that grant, which was open."""
        self.doubt_end = 0
        """It takes the end of the stream for it, at the latest that at the next grant."""
        self.doubt_epoch = 0
        """The first such next grant."""
        self.owed: set[int] = set()
        """Reopened, and not handed out since."""
        self.reopened: set[int] = set()
        """By any move so far."""
        self.passed: set[int] = set()
        """Passed over by an operator, and not reopened since."""

    def taken_over(self) -> None:
        """Another leader leads, and does not know how far the grant went that is open."""
        self.open_epoch = self.grant_epoch

    def note_grant(self, grant_epoch: int, end: int) -> None:
        """A grant is durable, and the stream has that end."""
        if 0 < self.open_epoch == self.grant_epoch:
            self.doubt_end, self.doubt_epoch = end, self.doubt_epoch or grant_epoch
        self.granted = self.stored

    def may_be_marked(self, offset: int, grant_epoch: int) -> bool:
        """Whether a mark needs no hand-out that was seen."""
        doubted = offset < self.doubt_end and grant_epoch >= self.doubt_epoch
        return doubted or offset < self.marked

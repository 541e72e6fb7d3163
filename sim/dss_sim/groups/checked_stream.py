"""The judge's knowledge of one stream, as one group consumes it.

Apart from `checker` and `cursor_rules`, whose rules change it. Invariant: `acked` has only acks
that still count, so nothing that was acknowledged before an operator moved the cursor is in it.
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
        """How often each offset was handed out since an operator reopened it, if one did."""
        self.first_below: defaultdict[Key, int] = defaultdict(lambda: start)
        """The offset after the last first hand-out; by key if the group keeps that order, else all
        under None."""
        self.hand_epoch = 0
        self.hand_member = ""
        """The member of the newest grant that handed out."""
        self.follows = False
        """The grant before it handed out too; else that is unknown."""
        self.attempts: dict[int, int] = {}
        """The last attempt of each offset that the grant handed out."""
        self.holes: list[tuple[int, int, int]] = []
        """Ranges that are gone, and for each the newest grant that may have read it before."""
        self.asked: dict[int, tuple[str, int, int]] = {}
        """Offsets that shall rest: who asked, when, and until when."""
        self.rests: dict[int, int] = {}
        """Those whose rest is durable: until when."""
        self.acked_us: dict[int, int] = {}
        self.acked: set[int] = set()
        self.durable: set[int] = set()
        self.settled: set[int] = set()
        """Offsets stored as acknowledged because users acked them, and not reopened since."""
        self.stored = Progress(start)
        self.grant_epoch = 0
        self.granted = Progress(start)
        """The stored progress when the newest grant was stored."""
        self.moved_epoch = 0
        """Grants before this epoch are from before an operator moved the cursor."""
        self.made: dict[int, tuple[Progress, Progress]] = {}
        """The progress before and after each move, by the number of its operation."""
        self.marked = 0
        """Below it, a mark may only mean that an operator moved the cursor."""
        self.open_epoch = 0
        """A new leader cannot know how far records were sent under that grant, which was open."""
        self.doubt_end = 0
        """It assumes the end of the stream, at the latest that of the next grant."""
        self.doubt_epoch = 0
        """The first such next grant."""
        self.owed: set[int] = set()
        """Offsets reopened, and not handed out since."""
        self.reopened: set[int] = set()
        """Offsets that any move has reopened."""
        self.passed: set[int] = set()
        """Offsets that an operator passed over, and that were not reopened since."""

    def taken_over(self) -> None:
        """A new leader leads, and does not know how far the open grant went."""
        self.open_epoch = self.grant_epoch

    def note_grant(self, grant_epoch: int, end: int) -> None:
        """A grant is durable, and the stream has that end."""
        if 0 < self.open_epoch == self.grant_epoch:
            self.doubt_end, self.doubt_epoch = end, self.doubt_epoch or grant_epoch
        self.granted = self.stored

    def may_be_marked(self, offset: int, grant_epoch: int) -> bool:
        """Whether an offset may be marked although no hand-out of it was seen."""
        doubted = offset < self.doubt_end and grant_epoch >= self.doubt_epoch
        return doubted or offset < self.marked

"""Who took the streams of members that went without leaving, told as an event.

Invariant: it only looks: a leader decides the same without it. A look costs nothing while nobody is
missed. Members that left, or were evicted, are not told of: somebody wanted that.
"""

from collections import Counter

from dss_core.counted import counted
from dss_core.ids import StreamId
from dssd.events.kinds import MEMBER_LOST
from dssd.events.model import GROUP_FIELD, Event, Note
from dssd.leaders.limits import TAKE_OVER_LOOK_MS, TAKE_OVER_MS_MAX, TAKERS_NAMED_MAX
from dssd.machines.leader.lent_stream import HELD
from dssd.machines.leader.state import Leader
from dssd.machines.messages import BorrowerId

Names = Counter[str]
"""Of clients, with streams."""


class LostMembers:
    """Of one leader."""

    def __init__(self, group: str, note: Note) -> None:
        self._group = group
        self._note = note
        self._gone: set[BorrowerId] = set()
        self._lost: Names = Counter()
        self._takers: Names = Counter()
        self._orphans: set[StreamId] = set()
        self._since_ms = self._taken_ms = 0
        self._look_ms = 0

    def miss(self, session_id: bytes, leader: Leader, now_ms: int) -> None:
        """A client is gone without a word; its members have their streams still."""
        members = [leader.members[each] for each in leader.sessions.get(session_id, ())]
        holding = [each for each in members if each.streams and not each.leaving]
        if holding and not self._orphans:
            self._since_ms = self._taken_ms = now_ms
            self._look_ms = now_ms + TAKE_OVER_LOOK_MS
        for member in holding:
            self._gone.add(member.borrower_id)
            self._lost[member.client_id] += len(member.streams - self._orphans)
            self._orphans |= member.streams

    @property
    def told_by_ms(self) -> int | None:
        """When they are told of at the latest, once there is a look; None: nobody is missed."""
        return self._since_ms + TAKE_OVER_MS_MAX if self._orphans else None

    def look(self, leader: Leader, now_ms: int) -> None:
        """See who has the streams of the missed by now."""
        if self._orphans and now_ms >= self._look_ms:
            self._settle(now_ms, leader)

    def _settle(self, now_ms: int, leader: Leader) -> None:
        self._look_ms = now_ms + TAKE_OVER_LOOK_MS
        living = leader.members.keys() - self._gone
        for stream in tuple(self._orphans):
            lent = leader.streams.get(stream)
            if lent is None:
                self._orphans.discard(stream)  # its topic was removed
            elif lent.state in HELD and lent.holder in living:
                self._orphans.discard(stream)
                self._takers[leader.members[lent.holder].client_id] += 1
                self._taken_ms = max(self._taken_ms, lent.since_ms)
        if not self._orphans or now_ms - self._since_ms >= TAKE_OVER_MS_MAX:
            self._tell(now_ms)

    def _tell(self, now_ms: int) -> None:
        lost, takers, left = self._lost, self._takers, len(self._orphans)
        if takers or left:
            waited_ms = (now_ms if left else self._taken_ms) - self._since_ms
            self._note(_event(self._group, lost, takers, left, waited_ms))
        self._lost, self._takers, self._orphans = Counter(), Counter(), set()
        self._gone = set()


def _event(group: str, lost: Names, takers: Names, left: int, waited_ms: int) -> Event:
    gone, taken = _named(lost), _taken(takers)
    outcome = [taken] if taken else []
    if left:
        outcome.append(f"nobody has taken {left}")
    return Event(
        MEMBER_LOST,
        group,
        f"{gone} went without leaving; of {counted(lost.total(), 'stream')}, "
        f"{' and '.join(outcome)} within {waited_ms / 1_000:.1f} s.",
        {
            GROUP_FIELD: group,
            "lost": gone,
            "streams": str(lost.total()),
            "taken_by": taken,
            "left": str(left),
            "ms": str(waited_ms),
        },
    )


def _named(clients: Names) -> str:
    names = sorted(clients)
    more = len(names) - TAKERS_NAMED_MAX
    named = ", ".join(names[:TAKERS_NAMED_MAX])
    return f"{named} and {more} more" if more > 0 else named


def _taken(takers: Names) -> str:
    most = takers.most_common(TAKERS_NAMED_MAX)
    rest = takers.total() - sum(count for _, count in most)
    others = [f"others took {rest}"] if rest else []
    return ", ".join([*(f"{name} took {count}" for name, count in most), *others])

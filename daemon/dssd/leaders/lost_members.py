"""Who took the streams of members that went without leaving, told as an event.

Invariant: it only observes: a leader decides the same without it. A look costs nothing while no
member is missed. There is no event for members that left or were evicted, as somebody wanted that.
The writes of `beside` are in the commit of each grant of such a stream, so even after a kill there
is an event for each stream that moved.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from dss_core.counted import counted
from dss_core.errors import StreamNotFound
from dss_core.ids import StreamId, StreamName
from dssd.events.kinds import MEMBER_LOST
from dssd.events.model import GROUP_FIELD, Event
from dssd.events.teller import Teller
from dssd.leaders.limits import TAKE_OVER_LOOK_MS
from dssd.machines.leader.lent_stream import HELD, LentStream, StreamState
from dssd.machines.leader.state import Leader
from dssd.machines.messages import BorrowerId
from dssd.store.port import Put, Write
from dssd.store.rows import EventRow

TAKE_OVER_MS_MAX = 10_000
"""How long an event waits for takers of a lost member's streams; then it tells what is known."""

TAKERS_NAMED_MAX = 5
"""Clients named in the event of a lost member; a group may have thousands."""

RANGES_NAMED_MAX = 8
"""Ranges of streams named for each of them: a sentence has 1,024 bytes."""


NameOf = Callable[[StreamId], StreamName]


class LostMembers:
    """The lost members of one leader's group."""

    def __init__(self, group: str, teller: Teller, name_of: NameOf) -> None:
        self._group = group
        self._teller = teller
        self._name_of = name_of
        self._since_ms = self._taken_ms = 0
        self._look_ms = 0
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._gone: set[BorrowerId] = set()
        self._lost: dict[str, set[StreamId]] = defaultdict(set)
        """The streams of lost clients, by their names."""
        self._takers: dict[str, set[StreamId]] = defaultdict(set)
        self._orphans: set[StreamId] = set()
        self._draft: EventRow | None = None

    def miss(self, session_id: bytes, leader: Leader, now_ms: int) -> None:
        """A client vanished; its members still have their streams."""
        members = [leader.members[each] for each in leader.sessions.get(session_id, ())]
        holding = [each for each in members if each.streams and not each.leaving]
        if holding and not self._orphans:
            self._since_ms = self._taken_ms = now_ms
            self._look_ms = now_ms + TAKE_OVER_LOOK_MS
        for member in holding:
            self._gone.add(member.borrower_id)
            self._lost[member.client_id] |= member.streams - self._orphans
            self._orphans |= member.streams

    def beside(self) -> list[Write]:
        """Writes for a commit of the leader that may grant a stream of a lost member."""
        if not self._orphans:
            return []
        gone, streams = self._gone_with()
        said = f"{gone} went without leaving, with {streams}; the daemon ended before it knew more."
        event = Event(MEMBER_LOST, self._group, said, self._fields())
        self._draft = self._teller.draft(event, self._draft)
        return [] if self._draft is None else [Put(self._draft)]

    @property
    def told_by_ms(self) -> int | None:
        """The latest time for the event, fixed at the next look; None: nobody is missed."""
        return self._since_ms + TAKE_OVER_MS_MAX if self._orphans else None

    def look(self, leader: Leader, now_ms: int) -> None:
        """See who has the streams of lost members by now."""
        if self._orphans and now_ms >= self._look_ms:
            self._settle(now_ms, leader)

    def _settle(self, now_ms: int, leader: Leader) -> None:
        self._look_ms = now_ms + TAKE_OVER_LOOK_MS
        living = leader.members.keys() - self._gone
        for stream in tuple(self._orphans):
            lent = leader.streams.get(stream)
            if lent is None:
                self._orphans.discard(stream)  # its topic was removed
            elif _is_lent(lent) and lent.holder in living:
                self._orphans.discard(stream)
                self._takers[leader.members[lent.holder].client_id].add(stream)
                self._taken_ms = max(self._taken_ms, lent.since_ms)
        if not self._orphans or now_ms - self._since_ms >= TAKE_OVER_MS_MAX:
            self._tell(now_ms)

    def _tell(self, now_ms: int) -> None:
        if self._takers or self._orphans:
            self._teller.note(self._event(now_ms), self._draft)
        self._begin_anew()

    def _event(self, now_ms: int) -> Event:
        left = self._orphans
        waited_ms = (now_ms if left else self._taken_ms) - self._since_ms
        taken = _taken(self._takers, self._name_of)
        outcome = [taken] if taken else []
        if left:
            outcome.append(f"nobody has taken {len(left)} ({ranges(left, self._name_of)})")
        gone, streams = self._gone_with()
        return Event(
            MEMBER_LOST,
            self._group,
            f"{gone} went without leaving; of {streams}, "
            f"{' and '.join(outcome)} within {waited_ms / 1_000:.1f} s.",
            self._fields() | {"taken_by": taken, "left": str(len(left)), "ms": str(waited_ms)},
        )

    def _gone_with(self) -> tuple[str, str]:
        """Who is lost, and how many streams, for people."""
        return _named(self._lost), counted(sum(map(len, self._lost.values())), "stream")

    def _fields(self) -> dict[str, str]:
        streams = sum(map(len, self._lost.values()))
        return {GROUP_FIELD: self._group, "lost": _named(self._lost), "streams": str(streams)}


def _is_lent(lent: LentStream) -> bool:
    """Whether it durably has a holder."""
    return lent.state in HELD and (lent.durable or lent.state is not StreamState.GRANTING)


def _named(clients: Collection[str]) -> str:
    return _cut(sorted(clients), TAKERS_NAMED_MAX)


def _taken(takers: Mapping[str, set[StreamId]], name_of: NameOf) -> str:
    most = sorted(takers.items(), key=lambda each: (-len(each[1]), each[0]))
    shown = [
        f"{name} took {len(streams)} ({ranges(streams, name_of)})"
        for name, streams in most[:TAKERS_NAMED_MAX]
    ]
    rest = sum(len(streams) for _, streams in most[TAKERS_NAMED_MAX:])
    return ", ".join([*shown, f"others took {rest}"] if rest else shown)


def ranges(streams: Collection[StreamId], name_of: NameOf) -> str:
    """The streams as people write them, those beside each other as ``orders/0/3-7``."""
    names: list[StreamName] = []
    for stream in streams:
        with suppress(StreamNotFound):  # its topic was removed in this moment
            names.append(name_of(stream))
    ranges: list[tuple[StreamName, int]] = []
    for name in sorted(names):
        first, last = ranges[-1] if ranges else (name, 0)
        if ranges and name == first._replace(partition=last + 1):
            ranges[-1] = first, name.partition
        else:
            ranges.append((name, name.partition))
    return _cut(
        [f"{first}" if first.partition == last else f"{first}-{last}" for first, last in ranges],
        RANGES_NAMED_MAX,
    )


def _cut(names: Sequence[str], most: int) -> str:
    named = ", ".join(names[:most])
    return f"{named} and {len(names) - most} more" if len(names) > most else named

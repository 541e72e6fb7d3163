"""What a client does with records: the promises of the client library, and a user with habits.

The library hands out delivered records in order, and its acks tell how far it has handed out. On a
revoke it drops what it has not handed out; after it stood still it hands out nothing until a ping
was answered. The user acks at once, acks later, refuses, or sits on a record.

Invariant: every hand-out and every ack is told to the history when it happens, except the acks of a
connection that was taken over, because the daemon may not receive those.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from dss_api.v1 import sessions_pb2, types_pb2
from dss_core.decode import decode
from dss_core.progress import Ranges, complement, normalised
from dss_sim.groups.history import AckDurable, Acked, Event, HandedOut, Key, Nakked
from dss_sim.ordering_keys import text_of
from dss_sim.sessions.plan import Habits
from dss_sim.sessions.timeline import Timeline
from dssd.sessions.scheduler import cut_frames

SETTLE_US = (500, 5_000)
TURN_US = (200, 20_000)
SLOW_TURN_US = (20_000, 400_000)
LATER_US = (1_000, 900_000)
RECORDS_A_TURN = 4
REVOKE_WAIT_SHARE = 0.8

Up = sessions_pb2.SessionUp


@dataclass(slots=True, eq=False)
class _Held:
    """A grant that the client holds."""

    number: int
    subscription: int
    group: str
    stream: str
    grant_epoch: int
    frontier: int
    reported: int
    held: set[int] = field(default_factory=set)
    """Handed out, neither acked nor refused."""
    acked: list[int] = field(default_factory=list)
    naks: list[int] = field(default_factory=list)
    again: list[int] = field(default_factory=list)
    """Handed out again, so their handling has begun."""
    all_acked: list[int] = field(default_factory=list)
    revoked: bool = False
    left: bool = False
    """Its subscription was left: deliveries are dropped."""


class Consumer:
    """The records of one connection. ``say`` sends to the daemon, ``tell`` to the history."""

    def __init__(
        self,
        name: str,
        habits: Habits,
        timeline: Timeline,
        chance: Random,
        *,
        say: Callable[[Up], None],
        tell: Callable[[Event], None],
    ) -> None:
        self._name = name
        self._habits = habits
        self._timeline = timeline
        self._chance = chance
        self._say = say
        self._tell = tell
        self._grants: dict[int, _Held] = {}
        self._inbox: deque[tuple[_Held, int, int, bool, Key]] = deque()
        self._tokens: dict[int, tuple[_Held, Ranges]] = {}
        self._token = 0
        self._turning = self._settling = False
        self._asked_ping = 0
        self._doubtful = False
        self._gone = False
        self._resting = False
        self.is_taken_over = False
        """A newer connection has its session."""
        self._turn_us = TURN_US
        self._paused: set[int] = set()
        """Subscriptions of which nothing new is handed out."""

    # What happens to it

    def go(self) -> None:
        """Let it vanish."""
        self._gone = True

    def rest(self) -> None:
        """Its process begins a newer connection: hand out nothing until that has succeeded or
        failed."""
        self._resting = True

    def wake(self) -> None:
        """The newer connection failed."""
        self._resting = False
        self._turn_soon()

    def slow_down(self) -> None:
        """Let its user take longer from now on, so that it has records in hand."""
        self._turn_us = SLOW_TURN_US

    def taken_over(self) -> None:
        """The newer connection is open: acks are still sent, but the daemon may not receive
        them."""
        self.is_taken_over = True

    def stand_still(self) -> None:
        """Stand still until `doubt`."""
        self._doubtful = True

    def doubt(self) -> None:
        """It stood still: ask the daemon whether it is still its client before it hands out
        anything."""
        self._token += 1
        self._asked_ping = self._token
        self._doubtful = True
        self._say(Up(ping=sessions_pb2.Ping(token=self._token)))

    def behave(self) -> None:
        """From now on ack everything at once, also what was handed out before."""
        self._habits = Habits(sync=self._habits.sync)
        for held in self._grants.values():
            for offset in sorted(held.held):
                self._ack(held, offset)
        self._settle_soon()

    # What the session says

    def granted(self, item: sessions_pb2.Granted, group: str) -> None:
        """A stream is lent."""
        floor = item.progress.floor
        self._grants[item.grant] = _Held(
            item.grant, item.subscription, group, item.stream, item.grant_epoch, floor, floor
        )

    def delivered(self, item: sessions_pb2.Deliver) -> None:
        """Records came."""
        held = self._grants.get(item.grant)
        if held is None or held.revoked or held.left:
            return
        spans, keys = cut_frames(item.frames), _keys_in(item.frames)
        mask = normalised((each.start, each.end) for each in item.mask)
        for start, end in complement(mask, spans.base[0], spans.base[-1]):
            for offset in range(start, end):
                self._inbox.append((held, offset, item.attempt, item.redelivered, keys[offset]))
        self._turn_soon()

    def revoke(self, item: sessions_pb2.Revoke) -> None:
        """The stream is to be given back."""
        held = self._grants.get(item.grant)
        if held is None:
            self._give_back(item.grant)
            return
        self._forget_undone(held)
        wait_us = int(item.deadline_ms * 1_000 * REVOKE_WAIT_SHARE)
        self._timeline.after(wait_us, lambda: self._end_grant(held))
        self._settle()

    def dropped(self, grant: int) -> None:
        """A grant is over."""
        held = self._grants.pop(grant, None)
        if held is not None:
            self._forget_undone(held)

    def left(self, subscription: int) -> None:
        """The subscription is left: what was handed out may still be acked."""
        self._paused.discard(subscription)
        for held in self._grants.values():
            if held.subscription == subscription:
                held.left = True
                self._inbox = deque(entry for entry in self._inbox if entry[0] is not held)

    def set_paused(self, item: sessions_pb2.PauseSet) -> None:
        """Its group was paused, or resumed."""
        if item.paused:
            self._paused.add(item.subscription)
        else:
            self._paused.discard(item.subscription)
            self._turn_soon()
        self._say_settled(self._grants.values())
        taken = sessions_pb2.PauseTaken(subscription=item.subscription, turn=item.turn)
        self._say(Up(pause_taken=taken))

    def settled(self, token: int) -> None:
        """The acks under a token are durable."""
        held, acked = self._tokens.pop(token)
        self._tell(AckDurable(self._timeline.now_us, held.group, held.stream, acked, self._name))

    def pong(self, token: int) -> None:
        """A ping was answered."""
        if token == self._asked_ping:
            self._doubtful = False
            self._turn_soon()

    # The user

    def _forget_undone(self, held: _Held) -> None:
        held.revoked = True
        self._inbox = deque(entry for entry in self._inbox if entry[0] is not held)

    def _end_grant(self, held: _Held) -> None:
        if not self._gone and self._grants.get(held.number) is held:
            self._say_settled([held])
            self.dropped(held.number)
            self._give_back(held.number)

    def _give_back(self, grant: int) -> None:
        self._say(Up(revoke_finished=sessions_pb2.RevokeFinished(grant=grant)))

    def _turn_soon(self) -> None:
        if not self._turning and self._next_ready() is not None:
            self._turning = True
            self._timeline.after(self._chance.randint(*self._turn_us), self._turn)

    def _turn(self) -> None:
        self._turning = False
        if self._gone or self._doubtful or self._resting:
            return
        for _ in range(RECORDS_A_TURN):
            at = self._next_ready()
            if at is None:
                break
            entry = self._inbox[at]
            del self._inbox[at]
            self._hand_out(*entry)
        self._settle_soon()
        self._turn_soon()

    def _next_ready(self) -> int | None:
        """The index of the first record in the queue whose subscription is not paused."""
        entries = enumerate(self._inbox)
        return next((at for at, each in entries if each[0].subscription not in self._paused), None)

    def _hand_out(
        self, held: _Held, offset: int, attempt: int, redelivered: bool, key: Key
    ) -> None:
        now_us = self._timeline.now_us
        handed = (held.group, held.stream, offset, self._name, held.grant_epoch)
        self._tell(HandedOut(now_us, *handed, attempt, redelivered, key))
        if offset < held.frontier:
            held.again.append(offset)
        held.frontier = max(held.frontier, offset + 1)
        held.held.add(offset)
        habits, drawn = self._habits, self._chance.random()
        if drawn < habits.refuse:
            held.held.discard(offset)
            held.naks.append(offset)
            self._tell(Nakked(now_us, held.group, held.stream, offset, self._name))
        elif drawn >= habits.refuse + habits.later + habits.sit:
            self._ack(held, offset)
        elif drawn < habits.refuse + habits.later:
            wait_us = self._chance.randint(*LATER_US)
            self._timeline.after(wait_us, lambda: self._ack_later(held, offset))

    def _ack_later(self, held: _Held, offset: int) -> None:
        if not self._gone and offset in held.held and self._grants.get(held.number) is held:
            self._ack(held, offset)
            self._settle_soon()

    def _ack(self, held: _Held, offset: int) -> None:
        if not self.is_taken_over:
            now_us = self._timeline.now_us
            self._tell(Acked(now_us, held.group, held.stream, offset, self._name))
        held.held.discard(offset)
        held.acked.append(offset)
        held.all_acked.append(offset)

    # What it says to the session

    def _settle_soon(self) -> None:
        if not self._settling:
            self._settling = True
            self._timeline.after(self._chance.randint(*SETTLE_US), self._settle)

    def _settle(self) -> None:
        self._settling = False
        if self._gone:
            return
        self._say_settled(self._grants.values())
        for held in list(self._grants.values()):
            if held.revoked and not held.held:
                self._end_grant(held)

    def _say_settled(self, grants: Iterable[_Held]) -> None:
        settles = [self._settle_of(held) for held in grants if _has_news(held)]
        if settles:
            self._say(Up(settle=sessions_pb2.SettleBatch(settles=settles)))

    def _settle_of(self, held: _Held) -> sessions_pb2.Settle:
        token = 0
        if held.all_acked and self._chance.random() < self._habits.sync:
            token = self._token = self._token + 1
            self._tokens[token] = held, _ranges(held.all_acked)
        settle = sessions_pb2.Settle(
            grant=held.number,
            acked=_wire(_ranges(held.acked)),
            naks=[sessions_pb2.Nak(start=at, end=at + 1) for at in sorted(held.naks)],
            frontier=held.frontier,
            token=token,
            handed_out=_wire(_ranges(set(held.again) - set(held.acked))),
        )
        held.acked, held.naks, held.again = [], [], []
        held.reported = held.frontier
        return settle


def _keys_in(frames: bytes) -> dict[int, Key]:
    """The keys of all records in some frames, by offset."""
    batch = decode(frames)
    return dict(zip(batch.offsets, map(text_of, batch.keys), strict=True))


def _has_news(held: _Held) -> bool:
    return bool(held.acked or held.naks or held.again or held.frontier != held.reported)


def _ranges(offsets: Iterable[int]) -> Ranges:
    return normalised((offset, offset + 1) for offset in offsets)


def _wire(ranges: Ranges) -> list[types_pb2.Range]:
    return [types_pb2.Range(start=start, end=end) for start, end in ranges]

"""A consumer: the client library's promises, and a user with habits.

The library hands out delivered records in order, one at a time. It reports how far it handed out
with its acks, 5 ms late at most. On a revoke it drops records that it has not handed out. It leaves
out a redelivered record whose earlier hand-out is acknowledged by then. After a silence of 0.4 L it
hands out nothing until the session has answered a ping. The user acks at once, later, in another
order, refuses, or keeps a record until its ack wait is over.

Invariant: every hand-out and every ack is told to the history at the moment at which it happens.
"""

from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from dss_core.errors import BorrowerEvicted, ClientBanned, DssError
from dss_core.lane import RETRY, grant_and_level
from dss_core.progress import Ranges, complement, normalised
from dss_sim.groups.history import AckDurable, Acked, HandedOut, Key, Nakked, OutOfTime
from dss_sim.groups.inbox import Arrived, Held, Inbox
from dss_sim.groups.key_turns import KeyTurns
from dss_sim.groups.log import cut_frames, keys_in
from dss_sim.groups.pipe import LATENCY_US, Pipe
from dssd.machines.delivery.durable_rests import DURABLE_REST_MS_MIN
from dssd.machines.delivery.events import (
    AskBack,
    Deliver,
    Nak,
    Settle,
    Settles,
    TakeBack,
    TakenBack,
)
from dssd.sessions.client_items import (
    Down,
    FinishRevoke,
    Granted,
    PauseSet,
    PauseTaken,
    PingSent,
    PongSent,
    Refused,
    Revoke,
    Revoked,
    Settled,
    Subscribe,
    Unsubscribe,
    UnsubscribedItem,
)

if TYPE_CHECKING:
    from dss_sim.groups.schedule import Host
    from dss_sim.groups.world import World

SILENCE_PERCENT = 40
"""The part of the lease after which a silent client hands out nothing."""
SETTLE_US = (500, 5_000)
TURN_US = (200, 20_000)
RECONNECT_US = (20_000, 500_000)
SUBSCRIBE_AGAIN_US = (20_000, 500_000)
REVOKE_WAIT_PERCENT = 80
RECORDS_A_TURN = 4
DELAYED_SHARE = 0.3
"""The share of refusals with a delay that the user chose."""
DELAY_MS = (1, 8_000)
BATCHES_SHARE = 0.4
"""The share of users of ordered groups who take batches."""


@dataclass(frozen=True, slots=True)
class Habits:
    """How a user treats records, as chances; the rest is acked at once."""

    later: float = 0.0
    refuse: float = 0.0
    sit: float = 0.0
    """The chance that the user neither acks nor refuses, until told to behave."""
    sync: float = 0.2
    """The share of settles whose user asks to be told when the acks are durable."""
    hang: float = 0.0
    """The share of kept records that it never lets go, even when the grant is revoked."""
    reject: float = 0.0
    """The share of refusals that reject the record, if the group has queues."""


class Client:
    """One consumer; `begin` makes it connect."""

    def __init__(self, world: "World", host: "Host", name: str, habits: Habits) -> None:
        self.host = host
        self.name = name
        self.habits = habits
        self.wanted: dict[int, str] = {}
        """The subscriptions: their groups by number."""
        self._shut_out: dict[int, str] = {}
        """Subscriptions that an operator ended, until the user tries again."""
        self.session_id = b""
        self.pipe: Pipe | None = None
        self.staying = False
        self._world = world
        self._silence_ms = world.plan.timing.lease_ms * SILENCE_PERCENT // 100
        self._chance = world.chance.of(f"user {name}")
        self._delays = world.chance.of(f"delays {name}")
        self._errors = world.chance.of(f"errors {name}")
        self._refusals = 0
        self._sessions = 0
        self._grants: dict[int, Held] = {}
        self._inbox = Inbox()
        self._keys = KeyTurns(self._grants, self._inbox)
        self._batches = world.chance.of(f"batches {name}")
        self._takes_batches = self._batches.random() < BATCHES_SHARE
        """Groups whose records are handed out in batches; others one by one."""
        self._batch = 0
        self._tokens: dict[int, tuple[Held, Ranges]] = {}
        self._token = 0
        self._heard_ms = 0
        self._doubtful = False
        self._asked_ping = 0
        self._turning = False
        self._settling = False

    # Coming and going

    def begin(self) -> None:
        """Connect, and stay connected until `leave`."""
        self.staying = True
        if not self.session_id:
            self._sessions += 1
            self.session_id = f"{self.name}#{self._sessions}".encode()
        self._connect()

    def leave(self) -> None:
        """Go away for good: close the connection, forget the session."""
        self.staying = False
        self.session_id = b""
        if self.pipe is not None:
            self.pipe.cut()

    def subscribe(self, number: int, group: str) -> None:
        """Want a subscription."""
        self.wanted[number] = group
        if self.pipe is not None:
            self.pipe.up(Subscribe(number, group))

    def _subscribe_again(self, number: int, group: str) -> None:
        """An operator ended or banned the subscription; the user tries again."""
        self._shut_out.pop(number, None)
        if group in self._world.groups and self.staying and number not in self.wanted:
            self.subscribe(number, group)

    def unsubscribe(self, number: int) -> None:
        """Leave a subscription; records that were handed out may still be acked."""
        if self.wanted.pop(number, None) is None:
            return
        self._inbox.resume(number)
        for held in self._grants.values():
            held.left = held.left or held.group not in self._groups()
        self._inbox.drop_over()
        if self.pipe is not None:
            self.pipe.up(Unsubscribe(number))

    def doubts_in_us(self) -> int:
        """How long a silence that begins now may last before it hands out nothing more."""
        return self.host.until_us(self.host.now_ms() + self._silence_ms + 1)

    def kill(self) -> None:
        """The process dies: only its name is left; a new one begins later."""
        self.host.crash()
        # A new process begins with all of its subscriptions.
        self.wanted |= self._shut_out
        self._shut_out.clear()
        self._forget()
        if self.pipe is not None:
            self.pipe.cut(session_notices_us=1_000)
        self.pipe = None

    def behave(self) -> None:
        """From now on ack everything at once, including records handed out before."""
        self.habits = Habits(sync=self.habits.sync)
        self._inbox.attend_all()
        self._turn_soon()
        for held in self._grants.values():
            for offset in sorted(held.held - held.hung):
                self._ack(held, offset)
        self._settle_soon()
        if self.staying and self.pipe is None:
            self._connect()

    def neglect(self, group: str) -> None:
        """The user takes nothing of a group until `attend`."""
        self._inbox.neglect(group)

    def attend(self, group: str) -> None:
        """The user takes records of a group again."""
        self._inbox.attend(group)
        self._turn_soon()

    def groups(self) -> set[str]:
        """The groups that it has subscribed to, or will again after an operator ended that."""
        return {*self.wanted.values(), *self._shut_out.values()}

    def _groups(self) -> set[str]:
        return set(self.wanted.values())

    def _connect(self) -> None:
        if not self.staying or self.pipe is not None:
            return
        pipe = self._world.connect(self)
        if pipe is None:
            self._world.after(RECONNECT_US, self._connect, self.host)
            return
        self.pipe = pipe
        self._heard_ms = self.host.now_ms()
        self._doubtful = False
        self._asked_ping = 0
        for number, group in self.wanted.items():
            pipe.up(Subscribe(number, group))

    def lost(self, pipe: Pipe) -> None:
        """The connection is gone."""
        if pipe is not self.pipe:
            return
        self._forget()
        self.pipe = None
        if self.staying:
            self._world.after(RECONNECT_US, self._connect, self.host)

    def _forget(self) -> None:
        self._grants.clear()
        self._inbox.clear()
        self._tokens.clear()
        self._turning = self._settling = False

    # What the session says

    def take(self, pipe: Pipe, item: Down) -> None:
        """An item came."""
        if pipe is not self.pipe:
            return
        now_ms = self.host.now_ms()
        self._doubtful = self._doubtful or now_ms - self._heard_ms > self._silence_ms
        self._heard_ms = now_ms
        match item:
            case Granted():
                self._granted(item)
            case Deliver():
                self._delivered(item)
            case Revoke(number, deadline_ms):
                self._revoke(number, deadline_ms)
            case Revoked(number, _):
                self._drop(number)
            case Settled(token):
                self._settled(token)
            case PongSent(token):
                self._pong(token)
            case Refused(error, subscription=subscription, grant=number):
                self._refused(error, subscription, number)
            case _:
                self._take_rare(item)

    def _take_rare(self, item: Down) -> None:
        match item:
            case PauseSet(subscription, paused, turn):
                self._set_paused(subscription, turn, paused=paused)
            case TakeBack():
                self._keys.taken_back(item)
                self._turn_soon()
            case AskBack(number, _, question):
                is_out = self._keys.asked_back(item)
                if is_out:
                    self._tell_out_of_time(self._grants[number], item.ranges[0][0])
                # Earlier settles are reported first.
                self._say(list(self._grants.values()))
                self._up(TakenBack(grant_and_level(number)[0], question, is_out))
                self._turn_soon()
            case UnsubscribedItem():
                pass
            case _:
                self._world.noticed(item)

    def _tell_out_of_time(self, held: Held, offset: int) -> None:
        now_us = self._world.schedule.now_us
        self._world.tell(OutOfTime(now_us, held.group, held.stream, offset, self.name))

    def _refused(self, error: DssError, subscription: int, number: int) -> None:
        self._drop(number)
        group = self.wanted.pop(subscription, None)
        if group is not None and error.code in (BorrowerEvicted.code, ClientBanned.code):
            self._shut_out[subscription] = group
            again = partial(self._subscribe_again, subscription, group)
            self._world.after(SUBSCRIBE_AGAIN_US, again, self.host)

    def _granted(self, item: Granted) -> None:
        number, subscription, floor = item.grant, item.subscription, item.progress.floor
        group = self.wanted.get(subscription)
        if group is None:
            self._up(FinishRevoke(number))
            return
        held = Held(number, subscription, group, item.stream, item.grant_epoch, floor, floor)
        held.ordered, held.top = item.ordered, floor
        self._grants[number] = held
        if item.queues:
            retry = self._world.retry_names[group, item.stream]
            retries = Held(
                number + RETRY, subscription, group, retry, item.grant_epoch, 0, 0, level=RETRY
            )
            retries.ordered = item.ordered
            self._grants[number + RETRY] = retries

    def _levels(self, number: int) -> list[Held]:
        """The grants of a lane, by level."""
        held = (self._grants.get(number), self._grants.get(number + RETRY))
        return [each for each in held if each is not None]

    def _delivered(self, item: Deliver) -> None:
        held = self._grants.get(item.grant)
        if held is None or held.revoked or held.left:
            return
        spans, keys = cut_frames(item.frames), keys_in(item.frames)
        mask = normalised((*item.mask, *self._acked_unknown(held)))
        for start, end in complement(mask, spans.base[0], spans.base[-1]):
            for offset in range(start, end):
                # The previous attempt of an entry is the one that failed.
                attempt = item.attempt - held.level
                arrived = (held, offset, attempt, item.redelivered, keys[offset])
                self._inbox.add(Arrived(*arrived))
        self._turn_soon()

    def _acked_unknown(self, held: Held) -> Ranges:
        """Acks that the session may not know: it may send these records again meanwhile."""
        awaited = (ranges for grant, ranges in self._tokens.values() if grant is held)
        return (*_ranges(held.acked), *chain(*held.under_way), *chain.from_iterable(awaited))

    def _revoke(self, number: int, deadline_ms: int) -> None:
        held = self._grants.get(number)
        if held is None:
            self._up(FinishRevoke(number))
            return
        for level in self._levels(number):
            level.revoked = True
        self._inbox.drop_over()
        wait_ms = deadline_ms * REVOKE_WAIT_PERCENT // 100
        give_up = partial(self._give_back, held)
        until_us = self.host.until_us(self.host.now_ms() + wait_ms)
        self._world.schedule.after(until_us, give_up, self.host)
        self._settle()

    def _give_back(self, held: Held) -> None:
        levels = self._levels(held.number)
        if self._grants.get(held.number) is held and not any(each.hung for each in levels):
            self._say(levels)
            self._drop(held.number)
            self._up(FinishRevoke(held.number))

    def _drop(self, number: int) -> None:
        for held in self._levels(number):
            del self._grants[held.number]
            held.revoked = True
            self._inbox.drop_over()

    def _set_paused(self, subscription: int, turn: int, *, paused: bool) -> None:
        if not paused:
            self._inbox.resume(subscription)
            self._turn_soon()
        elif subscription in self.wanted:
            self._inbox.pause(subscription)
        self._say(list(self._grants.values()))
        self._up(PauseTaken(subscription, turn))

    def _settled(self, token: int) -> None:
        waiting = self._tokens.pop(token, None)
        if waiting is not None:
            held, acked = waiting
            world = self._world
            told = (held.group, held.stream, acked, self.name, held.grant_epoch)
            world.tell(AckDurable(world.schedule.now_us, *told))

    def _pong(self, token: int) -> None:
        if token == self._asked_ping:
            self._asked_ping = 0
            self._doubtful = False
            self._turn_soon()

    # The user

    def _turn_soon(self) -> None:
        if not self._turning and self._inbox.has_any(self._keys.may):
            self._turning = True
            self._world.after(TURN_US, self._turn, self.host)

    def _turn(self) -> None:
        self._turning = False
        if not self._inbox:
            return
        if self._doubtful or self.host.now_ms() - self._heard_ms > self._silence_ms:
            self._doubtful = True
            if not self._asked_ping and self.pipe is not None:
                self._token += 1
                self._asked_ping = self._token
                self._up(PingSent(self._token))
            return
        self._keys.begin_batch()
        self._batch += self._takes_batches
        for _ in range(RECORDS_A_TURN):
            arrived = self._inbox.take(self._keys.may)
            if arrived is not None:
                self._hand_out(*arrived)
        self._settle_soon()
        self._turn_soon()

    def _hand_out(self, held: Held, offset: int, attempt: int, redelivered: bool, key: Key) -> None:
        world = self._world
        now_us, epoch = world.schedule.now_us, held.grant_epoch
        batch = self._batch if held.ordered else 0
        handed = (held.group, held.stream, offset, self.name, epoch, attempt, redelivered, key)
        world.tell(HandedOut(now_us, *handed, batch))
        if held.ordered:
            self._keys.handed_out(held, offset, key, in_batch=self._takes_batches)
        if held.level or offset < held.frontier or (held.ordered and held.top > held.frontier):
            held.again.append(offset)
        if not held.level and not held.ordered:
            held.frontier = max(held.frontier, offset + 1)
        held.held.add(offset)
        habits, drawn = self.habits, self._chance.random()
        if drawn < habits.refuse:
            self._refuse(held, offset)
        elif drawn >= habits.refuse + habits.later + habits.sit:
            self._ack(held, offset)
        elif drawn < habits.refuse + habits.later:
            world.after((1_000, 400_000), partial(self._ack_later, held, offset), self.host)
        elif self._chance.random() < habits.hang:
            held.hung.add(offset)

    def _ack_later(self, held: Held, offset: int) -> None:
        if offset in held.held and self._grants.get(held.number) is held:
            # Once the ack wait is over, a refusal of the record is void.
            if offset in held.keys and self._batches.random() < self.habits.refuse:
                self._refuse(held, offset)
            else:
                self._ack(held, offset)
            self._settle_soon()

    def _ack(self, held: Held, offset: int) -> None:
        world = self._world
        told = (held.group, held.stream, offset, self.name, held.grant_epoch)
        world.tell(Acked(world.schedule.now_us, *told))
        self._inbox.drop_acked(held, offset)
        if held.ordered:
            self._keys.settled(held, offset)
            self._turn_soon()
        held.held.discard(offset)
        held.hung.discard(offset)
        held.acked.append(offset)
        held.all_acked.append(offset)

    def _refuse(self, held: Held, offset: int) -> None:
        world = self._world
        now_us = world.schedule.now_us
        delayed = self._delays.random() < DELAYED_SHARE
        delay_ms = self._delays.randrange(*DELAY_MS) if delayed else None
        durable = delay_ms is not None and delay_ms >= DURABLE_REST_MS_MIN
        until_us = now_us + (delay_ms or 0) * 1_000 if durable else 0
        error, rejected = self._why(held)
        told = (held.group, held.stream, offset, self.name, until_us, error, rejected)
        world.tell(Nakked(now_us, *told))
        if held.ordered:
            self._keys.refused(held, offset)
            self._turn_soon()
        held.held.discard(offset)
        held.hung.discard(offset)
        held.naks.append(Nak(offset, offset + 1, delay_ms, error, "", rejected))

    def _why(self, held: Held) -> tuple[str, bool]:
        """The error, a new one each time, and whether the record is rejected; for lanes only."""
        if (held.group, held.stream) not in self._world.in_lanes:
            return "", False
        self._refusals += 1
        return f"{self.name}: {self._refusals}", self._errors.random() < self.habits.reject

    # Messages to the session

    def _up(self, item: FinishRevoke | PauseTaken | PingSent | Settles | TakenBack) -> None:
        if self.pipe is not None:
            self.pipe.up(item)

    def _settle_soon(self) -> None:
        if not self._settling:
            self._settling = True
            self._world.after(SETTLE_US, self._settle, self.host)

    def _settle(self) -> None:
        self._settling = False
        self._say(list(self._grants.values()))
        for held in list(self._grants.values()):
            levels = self._levels(held.number)
            if held.revoked and not held.level and not any(each.held for each in levels):
                self._give_back(held)

    def _say(self, grants: list[Held]) -> None:
        settles = [self._settle_of(held) for held in grants if held.has_news()]
        if settles:
            self._up(Settles(tuple(settles)))

    def _settle_of(self, held: Held) -> Settle:
        token = 0
        if held.all_acked and self._chance.random() < self.habits.sync:
            token = self._token = self._token + 1
            self._tokens[token] = held, _ranges(held.all_acked)
        settle = Settle(
            held.number,
            _ranges(held.acked),
            tuple(sorted(held.naks, key=lambda nak: nak.start)),
            held.frontier,
            token,
            handed_out=_ranges(set(held.again) - set(held.acked)),
        )
        held.under_way.append(settle.acked)
        # After this, no message comes that was sent before the session heard of it.
        self._world.schedule.after(2 * LATENCY_US[1], held.heard, self.host)
        held.acked, held.naks, held.again = [], [], []
        held.reported = held.frontier
        return settle


def _ranges(offsets: "list[int] | set[int]") -> Ranges:
    return normalised((offset, offset + 1) for offset in offsets)

"""The order of keys inside a lane of an ordered group: which records wait, and which are sent.

::

                  met by the cursor, or taken back from the client
    main ── of a held key: a follower ──► waits to be moved ──► where its key waits
                                                                  │
    retry queue:   only the head of a key ──► gate ──► its time ──► out
                   the next one, once that is settled

`dssd.machines.lanes` has the rules; this module applies them to reads, sends, naks and moves. When
the client refuses a record, its key is held at once, and later records of the key are taken back.
When an ack wait runs out, the client is asked first, as its acknowledgement may be on its way.
Later records of the same key would overtake a suspect, or a record that rests in the stream; so the
cursor moves such a record to the retry queue when it meets it.

The *gate*: a head is sent only once the cursor has passed its origin. An unacknowledged record
before it may be sent again, and the cursor meets that one first. Records of an earlier storage
topic are not sent again from this stream, so they have passed the gate.

Invariants: a record of a held key that was sent, and not taken back, waits in the index as a record
of main; a record that the cursor skips is in `held_back` until it is moved; a follower is charged
no attempt, and no acknowledgement settles it. This module does not know credit, turns or the log.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import NamedTuple

from dss_core.lane import DEAD, MAIN, RETRY
from dss_core.progress import (
    Range,
    Ranges,
    clipped,
    complement,
    covers,
    normalised,
    runs_of,
    total,
    without,
)
from dssd.limits import LAST_MOVE_MS, MOVE_RECORDS_MAX
from dssd.machines.delivery.causes import DIED, FOLLOWS, NO_KEY, REFUSED
from dssd.machines.delivery.entries import WaitingEntries
from dssd.machines.delivery.events import AskBack, ChunkRead, Entry, MovePiece, TakenBack
from dssd.machines.delivery.outstanding import GivenBack, SentRange
from dssd.machines.delivery.own_times import OwnTime, own_times_of
from dssd.machines.delivery.record_states import Failed
from dssd.machines.delivery.stream import DeliveredStream
from dssd.machines.lanes.key_index import KeyIndex, Waiting
from dssd.machines.lanes.sent_keys import SentKeys
from dssd.machines.queues import RetryPolicy

KEYS_LOOKED_AT_MAX = 500
"""How many keys an ordered lane looks at in one step, a microsecond each. The others wait for the
next step, which follows at once."""

ASKED_AT_ONCE_MAX = 1_000
"""About how many records with an expired ack wait a client is asked in one step: milliseconds."""

FOLLOWERS_MET_MAX = MOVE_RECORDS_MAX
"""How many followers are taken from a chunk, as many as a move takes; the rest is read again."""


class _Asked(NamedTuple):
    """A record whose ack wait ran out, and later records of its key that were sent."""

    level: int
    key: int
    first: int
    ranges: Ranges


class KeyedLane:
    """The ordered part of one lane, which owns it.

    ``add`` queues a piece to be moved; ``is_redriving`` tells whether a redrive is under way.
    """

    def __init__(
        self,
        parts: tuple[DeliveredStream, DeliveredStream],
        policy: RetryPolicy,
        add: Callable[[MovePiece], None],
        is_redriving: Callable[[], bool],
    ) -> None:
        main, retry = parts
        assert retry.entries is not None
        self._parts = parts
        self._main, self._retry = main, retry
        self._entries: WaitingEntries = retry.entries
        self.blocks = policy.blocks
        self._keyless_dead = policy.keyless_dead
        self._max_deliver = policy.max_deliver
        self._add = add
        self._is_redriving = is_redriving
        self.index = KeyIndex()
        self.followers: deque[int] = deque()
        """Records of main that wait to be moved behind their keys."""
        self._met: deque[int] = deque()
        self._met_pieces: list[MovePiece] = []
        """Records to move that the cursor has not passed yet. They are moved once it has: acked
        ranges and waiting records above the cursor would hold it up for ever."""
        self._sent = SentKeys(main.records.out.within)
        self._is_open = False
        self._active: set[int] = set()
        """Entries of the retry queue that are at the gate, due, with the client, or being moved."""
        self._at_gate: list[Waiting] = []
        self._unsettled: deque[int] = deque()
        """Keys that changed and are still to be looked at."""
        self._leaving: dict[int, Waiting] = {}
        """Of a key whose head is dead: its entries in the retry queue, up to this one, are being
        moved to the dead letters."""
        self._strained: set[int] = set()
        """Keys whose heads are dead, while a redrive may bring the heads back."""
        self._asked: dict[int, _Asked] = {}
        self._asked_keys: set[int] = set()
        self._last_number = 0
        self._seen: tuple[ChunkRead | None, int] = None, 0
        """The chunk that was looked at last, and the index version at that time."""
        self._own_times = own_times_of(main)
        main.records.held_back = ()
        main.keyed = self
        rests, suspects = retry.records.waiting.take_all()
        self._later = {
            at: (due_ms, line is suspects)
            for line in (rests, suspects)
            for due_ms, start, end in line
            for at in range(start, end)
        }
        """By offset of an entry that rests or is a suspect: when it is due, and which it is."""
        retry.records.held_back = ()

    # What the queues hold

    def enter(self, entries: Sequence[Entry], leaving: Ranges) -> list[int]:
        """These entries wait in the retry queue, except those that leave it; returns their keys."""
        self._entries.count(entries)
        if leaving:
            self._active.update(each.offset for each in entries if covers(leaving, each.offset))
        for each in entries:
            if each.is_suspect:
                due_ms = max(each.due_ms - self._entries.wall_ahead_ms, 0)
                self._later.setdefault(each.offset, (due_ms, True))
            if not _is_keyed(each) and each.offset not in self._active:
                self._go(each.offset, each.due_ms, each.attempt)
        return self._note(RETRY, entries)

    def enter_dead(self, entries: Sequence[Entry]) -> list[int]:
        """These entries are dead letters; returns their keys."""
        return self._note(DEAD, entries) if self.blocks else []

    def _note(self, level: int, entries: Iterable[Entry]) -> list[int]:
        keyed = [each for each in entries if _is_keyed(each)]
        newly = set()
        for each in keyed:
            waiting = Waiting(each.origin, level, each.offset, each.key, each.due_ms, each.attempt)
            if self.index.add(waiting):
                newly.add(each.key)
            if level == RETRY:
                self._leaving.pop(each.key, None)
        if self._is_open and newly:
            self._note_out(newly)
        return [each.key for each in keyed]

    def may_leave(self, start: int, end: int, now_ms: int) -> bool:
        """Whether entries of the retry queue may be copied: none is about to be sent. If so, none
        goes to the gate until it is copied."""
        soon_ms = now_ms + self._entries.wall_ahead_ms + LAST_MOVE_MS
        for at in range(start, end):
            waiting = self.index.at(RETRY, at)
            if at in self._active and waiting is not None and waiting.due_ms < soon_ms:
                return False
        self._active.update(range(start, end))
        return True

    def arrived(self, level: int, entries: Sequence[Entry], leaving: Ranges) -> None:
        """These entries are durable now, and acknowledge their sources."""
        keys = self.enter(entries, leaving) if level == RETRY else self.enter_dead(entries)
        for each in entries:
            keys += self._left(each.source_level, each.source_offset)
        self._look_at(keys)

    def settled(self, level: int, ranges: Ranges) -> Ranges:
        """These records are acknowledged, or lost; returns those that had waited."""
        known = self.index.in_main
        if level == MAIN and len(known) < total(ranges):
            met = [at for at in known if clipped(ranges, at, at + 1)]
        else:
            met = [at for start, end in ranges for at in range(start, end)]
        left = [(at, key) for at in met for key in self._left(level, at)]
        self._look_at([key for _, key in left])
        return normalised((at, at + 1) for at, _ in left)

    def _left(self, level: int, offset: int) -> list[int]:
        if level == RETRY:
            self._active.discard(offset)
        waiting = self.index.remove(level, offset)
        if waiting is None:
            return []
        if waiting.key not in self.index:
            self._leaving.pop(waiting.key, None)
        return [waiting.key]

    # What may go

    def opened(self) -> None:
        """All that the queues hold is known."""
        self._is_open = True
        self._unsettled = deque(self.index.keys())
        self.go_on()

    def next_ms(self) -> int | None:
        """When it has something to do without an input: at once (0), or not at all (None)."""
        is_passable = self._at_gate and self._at_gate[0].origin < self._passed()
        return 0 if self._unsettled or is_passable else None

    def go_on(self) -> None:
        """The cursor may have moved on, or a redrive may be over: some heads may go."""
        if not self._is_open:
            return
        self._pass_cursor()
        if self._strained and not self._is_redriving():
            self._unsettled += self._strained
            self._strained.clear()
        for _ in range(min(len(self._unsettled), KEYS_LOOKED_AT_MAX)):
            self._settle(self._unsettled.popleft())
        self._pass_gate()

    def _look_at(self, keys: Iterable[int]) -> None:
        """These keys changed: see what may be sent of them. A key may be named many times."""
        if not self._is_open:
            return
        keys = dict.fromkeys(keys)
        if len(keys) > KEYS_LOOKED_AT_MAX:
            self._unsettled += keys
        else:
            for key in keys:
                self._settle(key)
        self._pass_gate()

    def _settle(self, key: int) -> None:
        """Send the head of a key to the gate, if it may be sent."""
        if self.index.is_dead(key):
            self._follow_the_dead(key)
            return
        head = self.index.due(key)
        if head is not None and head.offset not in self._active:
            self._active.add(head.offset)
            heappush(self._at_gate, head)

    def _follow_the_dead(self, key: int) -> None:
        if self._is_redriving():
            self._strained.add(key)
            return
        stranded = self.index.stranded(key, self._leaving.get(key))
        some = list(islice(stranded, MOVE_RECORDS_MAX))
        idle = [each.offset for each in some if each.offset not in self._active]
        self._active.update(idle)
        for start, end in normalised((at, at + 1) for at in idle):
            self._add(MovePiece(RETRY, start, end, DEAD, 0, 0, FOLLOWS))
        if some:
            # When they arrive, the key is looked at again.
            self._leaving[key] = some[-1]

    def _passed(self) -> int:
        """The cursor has met every unacknowledged record of main below this offset."""
        return self._main.records.progress.first_unacked(self._main.cursor)

    def _pass_gate(self) -> None:
        passed, gate = self._passed(), self._at_gate
        for _ in range(KEYS_LOOKED_AT_MAX):
            if not gate or gate[0].origin >= passed:
                return
            head = heappop(gate)
            if self.index.head(head.key) == head:
                self._go(head.offset, head.due_ms, head.attempt)
            elif self.index.at(RETRY, head.offset) == head:
                self._active.discard(head.offset)
                self._leaving.pop(head.key, None)
                self._settle(head.key)

    def _go(self, offset: int, due_at_ms: int, attempt: int) -> None:
        """The entry is sent at its time."""
        later = self._later.pop(offset, None)
        if later is None:
            self._entries.wait(offset, due_at_ms, attempt)
            return
        due_ms, is_suspect = later
        self._entries.attempts[offset] = attempt
        self._retry.records.waiting.put((due_ms, offset, offset + 1), is_suspect=is_suspect)

    # What the cursor meets

    def meet(self, chunk: ChunkRead) -> None:
        """The rest of the chunk is about to be sent: hold back the records that may not be."""
        seen, version = self._seen
        if seen is not chunk:
            self._sent.note(chunk.base, chunk.keys)
        elif version == self.index.version:
            return
        main = self._main
        start, end = main.chunk_at, main.chunk_end
        if self.index or self._own_times or self._keyless_dead:
            closed = main.records.closed(chunk, start, end)
            wanted = without(complement(closed, start, end), main.records.held_back)
            self._hold_own_times(chunk, wanted)
            self._pass_by(chunk, wanted)
        self._seen = main.chunk, self.index.version

    def _hold_own_times(self, chunk: ChunkRead, wanted: Ranges) -> None:
        """Records that rest here, and suspects, hold their keys and are moved to a queue."""
        met: list[Range] = []
        newly: set[int] = set()
        self._own_times = [each for each in self._own_times if each.end > self._main.chunk_at]
        for each in self._own_times:
            for span in wanted:
                for low, high in each.within(span):
                    met.append((low, high))
                    own = chunk.keys[low - chunk.base : high - chunk.base]
                    newly |= self._wait_in_main(zip(range(low, high), own, strict=True))
                    self._move_in_its_time(low, high, each)
        if met:
            self._note_out(newly)
            self._hold_back(met)

    def _move_in_its_time(self, start: int, end: int, own: OwnTime) -> None:
        due_ms = own.due_ms + self._entries.wall_ahead_ms
        cause = DIED if own.is_suspect else REFUSED
        marking = self._main.records.marking
        for low, high, failures in marking.failed(start, end):
            for at, until, deaths in marking.deaths(low, high):
                piece = MovePiece(MAIN, at, until, RETRY, failures, due_ms, cause)
                if deaths >= self._max_deliver:
                    piece = piece._replace(to=DEAD, due_ms=0, cause=DIED)
                self._met_pieces.append(piece)

    def _pass_by(self, chunk: ChunkRead, wanted: Ranges) -> None:
        """Records of held keys wait as followers; records without a key may become dead letters."""
        base, keys = chunk.base, chunk.keys
        followers: list[int] = []
        keyless: list[int] = []
        for start, end in without(wanted, self._main.records.held_back):
            own = keys[start - base : end - base]
            followers += (start + row for row in self.index.held_among(own))
            if self._keyless_dead and 0 in own:
                keyless += (at for at, key in enumerate(own, start) if not key)
            if len(followers) + len(keyless) >= FOLLOWERS_MET_MAX:
                end = sorted((*followers, *keyless))[FOLLOWERS_MET_MAX - 1] + 1
                self._main.cut(end)
                followers = [at for at in followers if at < end]
                keyless = [at for at in keyless if at < end]
                break
        self._wait_in_main((at, keys[at - base]) for at in followers)
        self._met += followers
        dead = runs_of(keyless)
        for start, end in dead:
            self._met_pieces.append(MovePiece(MAIN, start, end, DEAD, 0, 0, NO_KEY))
        if followers or dead:
            self._hold_back([*runs_of(followers), *dead])

    def _hold_back(self, ranges: Iterable[Range]) -> None:
        records = self._main.records
        records.held_back = normalised((*records.held_back, *ranges))

    def count_moving(self) -> None:
        """Tell the stream how many followers wait to be moved."""
        self._main.records.following = len(self.followers)

    def _pass_cursor(self) -> None:
        """Records that were held back may be moved once the cursor has passed them."""
        cursor, met = self._main.cursor, self._met
        while met and met[0] < cursor:
            self.followers.append(met.popleft())
        self.count_moving()
        if any(piece.start < cursor for piece in self._met_pieces):
            pieces, self._met_pieces = self._met_pieces, []
            for piece in pieces:
                (self._add if piece.start < cursor else self._met_pieces.append)(piece)

    def next_followers(self, most: int) -> list[MovePiece]:
        """Take followers to be moved now, each to the queue where its key waits."""
        pieces: list[MovePiece] = []
        is_redriving = self._is_redriving()
        marking = self._main.records.marking
        while self.followers and most > 0:
            at = self.followers.popleft()
            waiting = self.index.at(MAIN, at)
            if waiting is None:
                continue
            most -= 1
            to = DEAD if self.index.is_dead(waiting.key) and not is_redriving else RETRY
            ((_, _, failures),) = marking.failed(at, at + 1)
            last = pieces[-1] if pieces else None
            if last is not None and last[2:5] == (at, to, failures):
                pieces[-1] = last._replace(end=at + 1)
            else:
                pieces.append(MovePiece(MAIN, at, at + 1, to, failures, 0, FOLLOWS))
        self.count_moving()
        return pieces

    def may_go(self, offset: int, room: int) -> int:
        """How many records of main, from this one on, may be moved with that room in the queues. A
        head for which entries of the retry queue wait may be moved into full queues too."""
        waiting = None if room > 0 else self.index.at(MAIN, offset)
        if waiting is None or self.index.head(waiting.key) != waiting:
            return max(room, 0)
        behind = islice(self.index.waiting(waiting.key), 1, None)
        return int(any(each.level == RETRY for each in behind))

    # What the client says

    def acked(self, acked: Ranges) -> Ranges:
        """The acks that count in main. Records that were taken back are sent again, in order."""
        return without(acked, self._main.records.held_back)

    def drop_followers(self) -> None:
        """Move no more followers: they are sent again under the next grant."""
        self.followers.clear()
        self._met.clear()
        self._met_pieces.clear()
        self.count_moving()

    def refused(self, failed: Iterable[Failed]) -> tuple[Ranges, Sequence[GivenBack]]:
        """Records of main failed: returns the followers taken back with them, and their credit."""
        firsts: dict[int, int] = {}
        refused: list[tuple[int, int]] = []
        for start, end, *_ in failed:
            for at in range(start, end):
                key = self._sent.of(at)
                if key:
                    firsts[key] = min(firsts.get(key, at), at)
                    refused.append((at, key))
        if not firsts:
            return (), []
        self._wait_in_main(sorted(refused))
        out = self._note_out(firsts)
        return self._take_back([at for at, key in out if at > firsts[key]])

    def _take_back(self, offsets: Sequence[int]) -> tuple[Ranges, Sequence[GivenBack]]:
        """Take back records that follow a failed record of their key. If the stream is being given
        back, none is taken: they are sent again under the next grant, in order."""
        records = self._main.records
        if records.ending or not offsets:
            return (), []
        ranges = runs_of(offsets)
        freed = records.out.take_among(ranges)
        self.followers += offsets
        self._hold_back(ranges)
        self.count_moving()
        return ranges, freed

    def _note_out(self, keys: Collection[int]) -> list[tuple[int, int]]:
        """These keys are held now: their records that are out wait too, or an entry would overtake
        them. Returns these records with their keys."""
        records = self._main.records
        out = self._sent.out_of(keys, records.progress.floor, records.sent)
        self._wait_in_main(out)
        return out

    def _wait_in_main(self, records: Iterable[tuple[int, int]]) -> set[int]:
        """Records of main, ascending, with their keys, wait from now on, except any without a key.
        Returns the keys that are newly held."""
        known, by_key = self.index.in_main, defaultdict[int, list[int]](list)
        for at, key in records:
            if key and at not in known:
                by_key[key].append(at)
        return {key for key, offsets in by_key.items() if self.index.add_in_main(key, offsets)}

    # What the client is asked

    def expire(
        self, level: int, now_ms: int, *, blamed: bool
    ) -> tuple[list[SentRange], list[AskBack]]:
        """Expire ack waits: a record without a key fails at once, for others the client is asked.

        In a pause nobody is blamed, and the program still has the records: the waits begin anew.
        """
        part = self._parts[level]
        records = part.records
        freed: list[SentRange] = []
        firsts: dict[int, int] = {}
        for start, end in records.waits.expired(now_ms, ASKED_AT_ONCE_MAX):
            for low, high in records.out.within(start, end):
                for at in range(low, high):
                    key = self._key_of(level, at)
                    if not blamed or key in self._asked_keys or key in firsts:
                        records.waits.handed_out(at, at + 1, now_ms)
                    elif key:
                        firsts[key] = at
                    else:
                        freed += records.fail(at, at + 1, now_ms)
        return freed, self._ask(level, firsts) if firsts else []

    def _key_of(self, level: int, offset: int) -> int:
        if level == MAIN:
            return self._sent.of(offset)
        waiting = self.index.at(RETRY, offset)
        return 0 if waiting is None else waiting.key

    def _ask(self, level: int, firsts: dict[int, int]) -> list[AskBack]:
        behind: dict[int, list[int]] = {key: [first] for key, first in firsts.items()}
        for at, key in self._note_out(firsts) if level == MAIN else ():
            if at > firsts[key]:
                behind[key].append(at)
        asks: list[AskBack] = []
        for key, first in firsts.items():
            self._last_number += 1
            ranges = normalised((at, at + 1) for at in behind[key])
            self._asked[self._last_number] = _Asked(level, key, first, ranges)
            self._asked_keys.add(key)
            asks.append(AskBack(self._parts[level].grant, ranges, self._last_number))
        return asks

    def taken_back(
        self, answer: TakenBack, now_ms: int
    ) -> tuple[DeliveredStream, Ranges, Sequence[GivenBack]] | None:
        """The client answered: returns the stream, the ranges still to take back, and their credit.
        None: the question was of another grant, or is settled already."""
        asked = self._asked.pop(answer.number, None)
        if asked is None:
            return None
        self._asked_keys.discard(asked.key)
        part = self._parts[asked.level]
        records, first = part.records, asked.first
        is_out = bool(records.out.within(first, first + 1))
        if records.ending or not (is_out or answer.out):
            return None
        freed: list[GivenBack] = [*records.fail(first, first + 1, now_ms)]
        if asked.level == MAIN:
            out = (part for span in asked.ranges for part in records.out.within(*span))
            freed += self._take_back([at for part in out for at in range(*part)])[1]
        return part, () if answer.out else asked.ranges, freed


def _is_keyed(entry: Entry) -> bool:
    return bool(entry.key)

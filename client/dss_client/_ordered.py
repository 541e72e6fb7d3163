"""The records of an ordered subscription on their way to the program, one of a key at a time.

`_key_order` has the rule; this module applies it to grants, pieces and acks. Usually a record is
acknowledged before the next one is asked for, and makes no key busy: the last hand-out is *in
hand*, and is only looked at when the next record is taken. While keys are busy, each ack is
reported here at once: the acks are *watched*. Invariants: a record that is handed out by itself was
set aside in its piece first. No ack is reported of a refused record, nor of later records of its
key in the same batch, until the daemon has said where they went: they come again.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, cast

from dss_client._acks import offset_ranges
from dss_client._key_order import HANDLED, OUT, REFUSED, KeyOrder
from dss_client.limits import FLUSH_RECORDS
from dss_client.record import DeliveredBatch, DeliveredRecord, made_of, row_of
from dss_core.lane import MAIN
from dss_core.progress import Ranges, clipped, normalised, without

if TYPE_CHECKING:
    from dss_client._grant import HeldGrant
    from dss_client._handout import Handout
    from dss_core.decode import Row


class Aside(NamedTuple):
    """A record that is handed out by itself, and not with its piece."""

    handout: "Handout"
    row: "Row"

    @property
    def grant(self) -> "HeldGrant":
        """Its grant."""
        return self.handout.grant

    @property
    def at(self) -> int:
        """The offset by which its grant knows it."""
        return self.row[0]

    def record(self) -> DeliveredRecord:
        """The record as the user gets it."""
        return made_of(self.handout.kind, self.handout, self.row)


def order_of(grant: "HeldGrant") -> "Ordered | None":
    """The keeper of the order of the grant's keys, if they have one."""
    return cast("Ordered | None", grant.order)


class Ordered:
    """Owned by the subscription. ``arrived`` is called when something may be handed out again."""

    def __init__(self, arrived: Callable[[], None]) -> None:
        self.interrupted = False
        """Set when the loop that hands out one by one has to look again for the next record."""
        self.paused = False
        self._rule: KeyOrder[Aside] = KeyOrder()
        self._hand: Sequence[DeliveredRecord] | DeliveredBatch = ()
        self._void: dict[HeldGrant, set[int]] = {}
        """Offsets whose acks are not reported."""
        self._watched: set[HeldGrant] = set()
        self._dispatched: dict[HeldGrant, set[int]] = {}
        """Records that a run has taken and given to no handler yet."""
        self._begun: set[tuple[HeldGrant, int]] = set()
        """Records that handlers have."""
        self._moved: dict[HeldGrant, set[int]] = {}
        """Records that handlers have and the daemon has moved: a refusal of them does nothing."""
        self._arrived = arrived

    def set_paused(self, paused: bool) -> None:
        """Hand out no held record, or go on."""
        self.note_hand()
        self.paused = paused

    @property
    def held(self) -> int:
        """How many records are held back, bounded by the credit given to the daemon."""
        return self._rule.held

    @property
    def is_quiet(self) -> bool:
        """Whether whole pieces may be handed out."""
        return self._rule.is_quiet

    def may_all_go(self) -> bool:
        """Whether every record that comes may go, except a second one of its key."""
        self.note_hand()
        return self._rule.is_quiet

    def carrier(self) -> "Handout | None":
        """A piece with a held record that may go now."""
        aside = None if self.paused else self._rule.first_ready()
        return None if aside is None else aside.handout

    # Handing out.

    def one_by_one(
        self, handout: "Handout", *, is_current: bool, resume_at: float
    ) -> Iterator[DeliveredRecord]:
        """The held records, then those of the piece: each is handed out when it is taken."""
        self.note_hand()
        self.interrupted = False
        if is_current:
            handout.rows()  # only after this it is known whether there are any
        yield from self._held_back(resume_at)
        if not is_current or handout.stopped or monotonic() >= resume_at:
            return
        if self._rule.is_quiet:
            yield from self._quietly(handout, resume_at)
        else:
            yield from self._watched_ones(handout, resume_at)

    def _quietly(self, handout: "Handout", resume_at: float) -> Iterator[DeliveredRecord]:
        """The loop while no key is busy: each record is acknowledged before the next is asked
        for."""
        # Names bound and body kept short: this runs once a record, like the loop of `Subscription`.
        clock, kind, acks = monotonic, handout.kind, handout.acks
        rows = islice(handout.rows(), FLUSH_RECORDS)
        for offset, subject, key, payload, headers, timestamp_us in rows:
            record = kind()
            record._source = handout
            record._at = offset
            record.subject = subject
            record.key = key
            record.payload = payload
            record.headers = headers
            record.timestamp_us = timestamp_us
            if clock() >= resume_at:
                handout.put_back((offset, subject, key, payload, headers, timestamp_us))
                return
            handout.last_offset = offset
            self._hand = hand = (record,)
            yield record
            if acks.run_end != offset + 1 or self._hand is not hand:
                self.note_hand()
                self.interrupted = True
                return

    def _watched_ones(self, handout: "Handout", resume_at: float) -> Iterator[DeliveredRecord]:
        """The loop while keys are busy."""
        rule, grant = self._rule, handout.grant
        for row in islice(handout.rows(), FLUSH_RECORDS):
            key = row[2]
            if key is not None and not rule.may_go(key):
                handout.begin_parts()
                handout.set_aside(row[0])
                rule.hold(key, grant, row[0], Aside(handout, row))
                continue
            record = made_of(handout.kind, handout, row)
            if monotonic() >= resume_at:
                handout.put_back(row)
                return
            handout.last_offset = row[0]
            if key is not None:
                self._is_busy(OUT, grant, row[0], key)
            yield record
            if self.interrupted or handout.stopped or rule.is_quiet:
                self.interrupted = True
                return

    def _held_back(self, resume_at: float) -> Iterator[DeliveredRecord]:
        while (aside := self._next(OUT)) is not None:
            record = aside.record()
            if monotonic() >= resume_at:
                self.put_back(aside)
                return
            aside.grant.hand_out(aside.at)
            yield record

    def pick(
        self,
        n: int,
        why: int,
        at_hand: "Callable[[], Handout | None]",
        finish: "Callable[[Handout], None]",
    ) -> list[Aside]:
        """Pick up to so many records, each of another key; this makes their keys busy.

        They are not handed out by that. ``at_hand`` gives the piece to take from; ``finish`` is
        called with each piece that is used up.
        """
        self.note_hand()
        picked: list[Aside] = []
        while len(picked) < n and (aside := self._next(why)) is not None:
            picked.append(aside)
        while len(picked) < n and (handout := at_hand()) is not None:
            self._pick_of(handout, n, why, picked)
            if len(picked) < n or handout.exhausted:
                finish(handout)
        return picked

    def _pick_of(self, handout: "Handout", n: int, why: int, picked: list[Aside]) -> None:
        rule, grant = self._rule, handout.grant
        rows = handout.rows()
        handout.begin_parts()
        aside = handout.set_aside
        if why == OUT:
            self._watch(grant)
        for row in rows:
            at, _, key, *_ = row
            aside(at)
            if key is None:
                picked.append(Aside(handout, row))
            elif rule.may_go(key):
                rule.occupy(why, key, grant, at)
                picked.append(Aside(handout, row))
            else:
                rule.hold(key, grant, at, Aside(handout, row))
                continue
            if len(picked) == n:
                return

    def _next(self, why: int) -> Aside | None:
        """The next held record that may go; its key is busy from now on."""
        rule = self._rule
        while not self.paused and (found := rule.next()) is not None:
            key, aside = found
            if not aside.grant.acked_meanwhile(aside.at):
                if key is not None:
                    self._is_busy(why, aside.grant, aside.at, key)
                return aside
        return None

    def put_back(self, aside: Aside) -> None:
        """Put back a picked record that is not handed out."""
        if not aside.grant.stopped:
            self._rule.hold_first(aside.row[2], aside.grant, aside.at, aside)
        self._rule.release(OUT, aside.grant, aside.at)

    def _is_busy(self, why: int, grant: "HeldGrant", at: int, key: bytes) -> None:
        self._rule.occupy(why, key, grant, at)
        if why == OUT and grant not in self._watched:
            self._watch(grant)

    def _watch(self, grant: "HeldGrant") -> None:
        if grant not in self._watched:
            self._watched.add(grant)
            grant.acks.watch(partial(self._acked_one, grant))

    def note_hand(self) -> None:
        """Look at the last hand-out: the keys of its unsettled records are busy."""
        hand, self._hand = self._hand, ()
        if isinstance(hand, DeliveredBatch):
            self._note_batch(hand)
            return
        if not hand or (len(hand) > 1 and _are_acked_in_order(hand)):
            return
        for record in hand:
            if record.key is not None and not _is_acked(record):
                self._is_busy(OUT, record._source.grant, record._at, record.key)

    def _note_batch(self, batch: DeliveredBatch) -> None:
        grant, decoded = batch._source.grant, batch._decoded
        if grant.has_acked_all(batch._source.ranges):
            return
        for at, key in zip(decoded.offsets, decoded.keys, strict=True):
            if key is not None and not grant.has_acked(at):
                self._is_busy(OUT, grant, at, key)

    # Batches.

    def in_hand(self, last: Sequence[DeliveredRecord] | DeliveredBatch) -> None:
        """Note the last hand-out."""
        self._hand = last

    def batch(self, handout: "Handout | None") -> DeliveredBatch | None:
        """The records of one piece that may go: held ones first, else of this piece.

        All present records of a key may go together, in order. They are handed out by this call.
        """
        asides = self._ready_of_a_piece()
        if not asides and handout is not None:
            asides = self._sifted(handout)
        if not asides:
            return None
        grant = asides[0].grant
        offsets = [aside.at for aside in asides]
        batch = asides[0].handout.apart(offsets)
        grant.handed_out(offset_ranges(offsets))
        self._hand = batch
        return batch

    def _ready_of_a_piece(self) -> list[Aside]:
        rule, found = self._rule, list[Aside]()

        def fits(aside: Aside) -> bool:
            return not found or aside.handout is found[0].handout

        while not self.paused and (each := rule.next(fits)) is not None:
            aside = each[1]
            if not aside.grant.acked_meanwhile(aside.at):
                found.append(aside)
        return found

    def _sifted(self, handout: "Handout") -> list[Aside]:
        """The rest of a piece, without the records that have to wait."""
        found: list[Aside] = []
        rows = handout.rows()
        handout.begin_parts()
        for row in rows:
            handout.set_aside(row[0])
            aside, key = Aside(handout, row), row[2]
            if key is None or self._rule.may_go(key):
                found.append(aside)
            else:
                self._rule.hold(key, handout.grant, row[0], aside)
        return found

    # Runs.

    def dispatch(self, aside: Aside) -> DeliveredRecord:
        """A run takes a picked record: its key is busy until the run says what became of it."""
        self._dispatched.setdefault(aside.grant, set()).add(aside.at)
        return aside.record()

    def begins(self, record: DeliveredRecord) -> bool:
        """A handler is about to get the record; False if the daemon took it back meanwhile."""
        grant, at = record._source.grant, record._at
        dispatched = self._dispatched.get(grant, set())
        if at not in dispatched:
            return False
        dispatched.discard(at)
        self._begun.add((grant, at))
        return True

    def returned(self, record: DeliveredRecord) -> None:
        """The run is done with the record; one that no handler got may still be `left`."""
        grant, at, key = record._source.grant, record._at, record.key
        if at in self._dispatched.get(grant, ()):
            return
        if (grant, at) in self._begun and key is not None and not self._is_settled(grant, at):
            # Its handler was cancelled: whoever takes records next refuses it.
            self._is_busy(OUT, grant, at, key)
        self._let_go(grant, at)

    def _is_settled(self, grant: "HeldGrant", at: int) -> bool:
        """Whether nothing waits any more for a record that a handler had."""
        moved = at in self._moved.get(grant, ())
        return moved or grant.over or grant.has_acked(at) or grant.has_refused(at)

    def _let_go(self, grant: "HeldGrant", at: int) -> None:
        self._begun.discard((grant, at))
        self._moved.get(grant, set()).discard(at)
        self._rule.release(HANDLED, grant, at)
        self._look()

    def left(self, record: DeliveredRecord) -> None:
        """A run that had taken the record ended before any handler got it."""
        grant, at = record._source.grant, record._at
        dispatched = self._dispatched.get(grant, set())
        if at in dispatched:
            dispatched.discard(at)
            aside = Aside(cast("Handout", record._source), row_of(record))
            self._rule.hold_first(record.key, grant, at, aside)
        self._let_go(grant, at)

    # The fate of records that were handed out.

    def _is_void(self, grant: "HeldGrant", at: int) -> bool:
        return at in self._void.get(grant, ())

    def _acked_one(self, grant: "HeldGrant", at: int) -> bool:
        """One record is acknowledged; returns whether that counts."""
        if self._void and self._is_void(grant, at):
            return False
        self._rule.release(OUT, grant, at)
        self._look()
        return True

    def acked(self, grant: "HeldGrant", ranges: Ranges) -> Ranges:
        """Ranges are acknowledged; returns those that count."""
        hand = self._hand
        if (
            isinstance(hand, DeliveredBatch)
            and hand._source.grant is grant
            and hand._source.ranges == ranges
        ):
            self._hand = ()
        self.note_hand()
        if void := self._void.get(grant):
            ranges = without(normalised(ranges), offset_ranges([*void]))
        self._rule.release_among(OUT, grant, normalised(ranges))
        self._look()
        return ranges

    def refused(self, grant: "HeldGrant", ranges: Ranges) -> Ranges:
        """Ranges are refused; returns those that are to be charged.

        Later records of the same keys that were handed out are refused too, and come again.
        """
        self.note_hand()
        if grant.level != MAIN or grant.over:
            # In a retry queue no later record of a key comes while one is unsettled.
            self._rule.release_among(OUT, grant, normalised(ranges))
            self._look()
            return ranges
        charged, first = self._first_of_keys(grant, ranges)
        for key, at in first.items():
            self._rule.occupy(REFUSED, key, grant, at)
        out = self._rule.offsets(OUT, grant)
        behind = [at for at, key in out.items() if at > first.get(key, _BEYOND)]
        for at in (*behind, *first.values()):
            self._rule.release(OUT, grant, at)
        if behind:
            grant.refuse_with(behind)
        if first:
            self._void.setdefault(grant, set()).update(behind, first.values())
        self._watch(grant)
        self._look()
        return offset_ranges(charged) if charged else ()

    def _first_of_keys(
        self, grant: "HeldGrant", ranges: Ranges
    ) -> tuple[list[int], dict[bytes, int]]:
        """The refused records that are charged, and the first of each key, which waits for a
        word."""
        out = self._rule.offsets(OUT, grant)
        handled = self._rule.offsets(HANDLED, grant)
        moved, void = self._moved.get(grant, ()), self._void.get(grant, ())
        charged: list[int] = []
        first: dict[bytes, int] = {}
        for at in (at for part in normalised(ranges) for at in range(*part) if at not in void):
            key = out.get(at, handled.get(at))
            if key is None or at in moved or key not in first:
                charged.append(at)
            if key is not None and at not in moved:
                first.setdefault(key, at)
        return charged, first

    def _look(self) -> None:
        """Something was settled: look whether held records may go."""
        rule = self._rule
        if rule.ready or rule.loose:
            self.interrupted = True
            self._arrived()
        if not rule.busy and self._watched and not any(self._void.values()):
            for grant in self._watched:
                grant.acks.watch(None)
            self._watched.clear()

    # The messages of the daemon.

    def taken_back(self, grant: "HeldGrant", ranges: Ranges) -> None:
        """The daemon moved these records, so it has said where the refused ones went."""
        self.note_hand()
        self._rule.release_among(REFUSED, grant, ranges)
        if void := self._void.get(grant):
            void.difference_update([at for at in void if clipped(ranges, at, at + 1)])
        self._moves(grant, ranges)

    def asked_back(self, grant: "HeldGrant", ranges: Ranges) -> bool:
        """The daemon moves these records if the program still has the first one; returns whether it
        has.

        The program has had them for as long as the ack wait allows.
        """
        self.note_hand()
        first = ranges[0][0]
        if not grant.holds(first):
            return False
        self._moves(grant, ranges)
        return True

    def _moves(self, grant: "HeldGrant", ranges: Ranges) -> None:
        self._rule.drop(grant, ranges)
        dispatched = self._dispatched.get(grant, set())
        for at in [at for at in dispatched if clipped(ranges, at, at + 1)]:
            dispatched.discard(at)
        handled = self._rule.offsets(HANDLED, grant)
        if moved := [at for at in handled if clipped(ranges, at, at + 1)]:
            self._moved.setdefault(grant, set()).update(moved)
        self._rule.release_among(OUT, grant, ranges)
        self.interrupted = True
        self._look()

    def stopped(self, grant: "HeldGrant") -> None:
        """Nothing more of the grant is handed out."""
        self.note_hand()
        self._rule.drop_all(grant)
        self._rule.release_all(REFUSED, grant)
        self._dispatched.pop(grant, None)
        self._look()

    def over(self, grant: "HeldGrant") -> bool:
        """The grant is over, and no record of it can be settled; returns whether the program has
        any."""
        self._void.pop(grant, None)
        self._moved.pop(grant, None)
        self._rule.release_all(REFUSED, grant)
        self._look()
        return bool(self._rule.offsets(OUT, grant))

    def give_up(self, grant: "HeldGrant") -> None:
        """The ack wait is over for the program's records of a grant that is over."""
        self._rule.release_all(OUT, grant)
        self._look()

    def end(self) -> None:
        """Nothing is handed out any more."""
        self._rule.clear_held()


def _is_acked(record: DeliveredRecord) -> bool:
    """As `DeliveredRecord.acked`, which the classes for threads override."""
    source = record._source
    source.note(record._at + 1)
    return source.grant.has_acked(record._at)


def _are_acked_in_order(records: Sequence[DeliveredRecord]) -> bool:
    """Whether the records were acknowledged one after the other and not reported yet, as most are:
    then nothing else need be looked at."""
    first, last = records[0], records[-1]
    acks = first._source.acks
    return acks is last._source.acks and acks.run_has(first._at, last._at)


_BEYOND = 1 << 64

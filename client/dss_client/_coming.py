"""Records that came for a subscription and were not handed out yet; the session feeds it.

Invariant: it has nothing to hand out of a grant that was taken back, or of a paused group. How
records are taken from here is in `subscription`.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from dss_client._handout import Handout, Handouts
from dss_client._held_shards import HeldShards
from dss_client._ordered import Ordered, order_of
from dss_client._retried import RetriedHandout
from dss_client._runs import Runs
from dss_client._subscription_options import GrantNotice, SubscriptionOptions
from dss_client.limits import ENDED_GRANTS_MAX, FLUSH_RECORDS
from dss_core.errors import DssError
from dss_core.lane import MAIN
from dss_core.progress import Ranges, total

if TYPE_CHECKING:
    from dss_client._grant import HeldGrant

EARLIER_ATTEMPT_S = 30.0
"""How long an unsettled record holds up its key in this client after its stream was taken back: the
default ack wait, after which the record goes to others in any case."""


class Coming:
    """Owned by the user, who takes records from it; the session adds them."""

    handouts = Handouts(Handout, RetriedHandout)

    def __init__(self, options: SubscriptionOptions) -> None:
        self.options = options
        self._inbox: deque[Handout] = deque()  # bounded by the credit given to the daemon
        self._current: Handout | None = None
        self._order: Ordered | None = None
        """Set once a stream of an ordered group was lent."""
        self._arrived = asyncio.Event()
        self._error: DssError | None = None
        self._callback_error: BaseException | None = None
        self._draining = False
        self._standing = ""
        self._paused = False
        self._handed: dict[tuple[int, str], int] = {}
        """How far each stream was handed out. The key has the storage topic too, because a topic
        that is made anew has the same names."""
        self._unflushed_records = 0
        """Handed out since the last report, except from the current piece."""
        self._runs = Runs()
        self._ended: deque[HeldGrant] = deque()
        self._shards = HeldShards(self._call_back, options.on_assigned, options.on_lost)
        self._late_acks = 0

    # Taking from it.

    def _take_no_more(self) -> None:
        self._draining = True
        self._runs.take_no_more()
        self._inbox.clear()
        if self._order is not None:
            self._order.end()
        self._stop_current()
        self._arrived.set()

    def _stop_current(self) -> None:
        """Hand out no more of the current piece, and note how far it was handed out."""
        if self._current is not None:
            self.note_current()
            self._current.grant.touch()
            self._current.stopped = True
            self._current = None

    def _is_flush_due(self) -> bool:
        return bool(self._inbox) and self._unflushed_records >= FLUSH_RECORDS

    def _at_hand(self) -> "Handout | None":
        """The piece to hand out from, if any, also one of which records are held back."""
        handout = self._begun()
        if handout is None and self._order is not None:
            return self._order.carrier()
        return handout

    def _begun(self) -> "Handout | None":
        """The piece to hand out from, if any is here."""
        while self._current is None and self._inbox and not self._paused:
            self._begin(self._inbox.popleft())
        return self._current

    def _count(self, enough: int) -> int:
        """How many records wait to be handed out, counted until there are enough."""
        if self._paused:
            return 0
        count = 0 if self._current is None else self._current.count_left()
        count += 0 if self._order is None else self._order.held
        for handout in self._inbox:
            if count >= enough:
                break
            count += handout.count_left()
        return count

    def _begin(self, handout: "Handout") -> None:
        if handout.grant.stopped:
            return
        self._current = handout
        handout.grant.touch()

    def _finish(self, handout: "Handout") -> None:
        """The piece is used up, or was stopped."""
        if self._current is handout:
            self._current = None
        grant = handout.grant
        if not handout.stopped:
            self._note_handed(handout, handout.end)
            self._unflushed_records += total(handout.ranges)
            grant.touch()
        handout.release()

    def _touch_current(self) -> None:
        if self._current is not None:
            self._current.grant.touch()

    # What follows is called by the session.

    def _note_handed(self, handout: "Handout", end: int) -> None:
        """Remember how far a stream was handed out."""
        handout.note(end)
        grant = handout.grant
        # Records from a queue are marked as redelivered anyway.
        if grant.level == MAIN:
            stream = grant.storage_topic_id, grant.stream
            self._handed[stream] = max(self._handed.get(stream, 0), end)

    def note_current(self) -> None:
        """Bring the frontier of the piece that is being handed out up to date."""
        if self._current is not None and self._current.last_offset >= 0:
            self._note_handed(self._current, self._current.last_offset + 1)

    def handed_below(self, storage_topic_id: int, stream: str) -> int:
        """Offsets of the stream below it may have been handed out by this client."""
        return self._handed.get((storage_topic_id, stream), 0)

    def granted(self, grant: "HeldGrant") -> None:
        """A stream was lent to this subscription."""
        self._order = order_of(grant)
        self._shards.add(grant.shard)
        self._call_back(self.options.on_grant, _notice_of(grant))

    def revoked(self, grant: "HeldGrant") -> None:
        """A stream was taken back."""
        self._call_back(self.options.on_revoke, _notice_of(grant))

    def stands(self, state: str) -> None:
        """The daemon says how it stands."""
        self._standing = state

    def set_paused(self, paused: bool) -> None:
        """From now on hand out nothing new, whichever way it is taken; or hand out again."""
        self._paused = paused
        if self._order is not None:
            self._order.set_paused(paused)
        self._runs.set_paused(paused)
        if paused and self._current is not None:
            rest = self._current
            self.note_current()
            rest.grant.touch()
            self._inbox.appendleft(rest.split_off())
            self._current = None
        self._arrived.set()

    def refused(self, acks: int) -> None:
        """The daemon refused acks."""
        self._late_acks += acks

    def deliver(self, handout: "Handout") -> None:
        """Records came."""
        if not self._draining:
            self._inbox.append(handout)
            self._arrived.set()

    def stop(self, grant: "HeldGrant") -> None:
        """Hand out no more of the grant."""
        if grant.stopped:
            return
        grant.stopped = True
        if self._current is not None and self._current.grant is grant:
            self._stop_current()
        self._runs.drop(grant)
        if (order := order_of(grant)) is not None:
            order.stopped(grant)
        if grant.level == MAIN:
            stream = grant.storage_topic_id, grant.stream
            self._handed[stream] = max(self.handed_below(*stream), grant.seen_below())
        self._inbox = deque(handout for handout in self._inbox if handout.grant is not grant)

    def ordered(self) -> Ordered:
        """What keeps the order of keys, over all lent streams."""
        if self._order is None:
            self._order = Ordered(self._arrived.set)
            self._order.set_paused(self._paused)
        return self._order

    def bring_acks(self) -> None:
        """Tell the grants of all acks that were given."""

    def taken_back(self, grant: "HeldGrant", ranges: Ranges) -> None:
        """The daemon has moved these records to a queue; do not hand out those that are still
        here."""
        if grant.order is not None:
            grant.order.taken_back(grant, ranges)
            self._drop(grant, ranges)

    def asked_back(self, grant: "HeldGrant", ranges: Ranges) -> bool:
        """The same, unless the program has settled the first of these; returns whether it still has
        it."""
        order = order_of(grant)
        out = order is not None and order.asked_back(grant, ranges)
        if out:
            self._drop(grant, ranges)
        return out

    def _drop(self, grant: "HeldGrant", ranges: Ranges) -> None:
        here = [*self._inbox] if self._current is None else [self._current, *self._inbox]
        for handout in here:
            if handout.grant is grant:
                handout.take_back(ranges)
        grant.taken_back(ranges)

    def ended(self, grant: "HeldGrant") -> None:
        """A grant is over; acks that still come for it are only counted."""
        order = order_of(grant)
        if order is not None and order.over(grant):
            loop = asyncio.get_running_loop()
            loop.call_later(EARLIER_ATTEMPT_S, order.give_up, grant)
        if grant.level == MAIN:
            self._shards.let_go(grant.shard)
        self._ended.append(grant)
        if len(self._ended) > ENDED_GRANTS_MAX:
            self._late_acks += self._ended.popleft().late

    def fail(self, error: DssError) -> None:
        """The subscription is over: iteration raises once what came is handed out."""
        self._error = error
        self._arrived.set()

    def _call_back(self, callback: Callable[..., None] | None, *told: object) -> None:
        """Call the user's callback; its exception is raised in the user's task, not in ours."""
        if callback is None:
            return
        try:
            callback(*told)
        except BaseException as error:  # noqa: BLE001 - raised again where records are taken
            self._callback_error = error
            self._arrived.set()

    def _raise_callback_error(self) -> None:
        error, self._callback_error = self._callback_error, None
        if error is not None:
            raise error


def _notice_of(grant: "HeldGrant") -> GrantNotice:
    return GrantNotice(grant.stream, grant.grant_epoch, grant.floor)

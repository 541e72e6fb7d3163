"""A subscription that threads take records from.

Records come piece by piece from the loop; inside a piece a thread takes one after the other by
itself. Invariant: as with the subscription in the loop, a record counts as handed out when the
user gets it and not before; of a stream that was taken back, of a paused group, and after a silence
of the daemon, none is handed out.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from dss_client.limits import FLUSH_RECORDS, SURE_IN_THREADS_S
from dss_client.record import DeliveredRecord as AsyncRecord
from dss_client.record import grant_behind
from dss_client.subscription import Subscription as AsyncSubscription
from dss_client.sync._acks import AckBox
from dss_client.sync.records import DeliveredBatch, DeliveredRecord, as_kind, batch_for_threads

if TYPE_CHECKING:
    from dss_client._grant import HeldGrant
    from dss_client._handout import Handout
    from dss_client.sync._portal import Portal


Piece = tuple["Handout", Iterator[AsyncRecord]]
"""Where records of it are noted, and those that were not taken yet, but for one put back."""


class Pieces(AsyncSubscription):
    """The subscription in the loop, which hands out whole pieces."""

    sure_s = SURE_IN_THREADS_S
    portal: "Portal"

    def serve(self, portal: "Portal") -> None:
        """Begin to serve threads; before anything is delivered."""
        self.portal = portal
        self.hand_out = threading.Lock()
        """Held while a thread takes a record, and while the loop stops a piece."""
        self._boxes: dict[HeldGrant, AckBox] = {}

    def box_of(self, grant: "HeldGrant") -> AckBox:
        """Where acks of the grant's records are left."""
        box = self._boxes.get(grant)
        if box is None:
            box = self._boxes[grant] = AckBox(self.portal, grant)
        return box

    def piece(self, handed: "Handout | None") -> "Piece | None":
        """The piece to hand out from, after some of another, or all; None after `drain`."""
        # Most are here already: a task would cost the thread that waits two turns of the loop more.
        return self.portal.call(self._piece_now, handed) or self.portal.run(self._piece(handed))

    def _piece_now(self, handed: "Handout | None") -> "Piece | None":
        self.deliver_acks()
        if handed is not None and handed is self._current:
            if not handed.exhausted:
                return None
            self._finish(handed)
        handout = self._next_now()
        return None if handout is None else _piece_of(handout)

    async def _piece(self, handed: "Handout | None") -> "Piece | None":
        if handed is not None and handed is self._current:
            await self._after(handed)
        handout = await self._next()
        return None if handout is None else _piece_of(handout)

    async def batches_for_threads(self) -> AsyncGenerator[DeliveredBatch, None]:
        """What came, as columns."""
        async with aclosing(self.batches()) as batches:
            async for batch in batches:
                yield batch_for_threads(batch, self.box_of(grant_behind(batch)))

    def records(self) -> Iterator[DeliveredRecord]:
        """Records, one by one, in the thread that takes them."""
        # Bound to names and kept short: this loop runs once a record.
        clock, hand_out = monotonic, self.hand_out
        handout: Handout | None = None
        while (piece := self.piece(handout)) is not None:
            handout, rows = piece
            # Another thread may look further meanwhile, which leaves more to that one.
            left_out, looked_below = handout.left_out, handout.looked_below
            for _ in range(FLUSH_RECORDS):
                with hand_out:
                    # Another thread may have begun the next one, or the loop have stopped this.
                    if self._current is not handout:
                        break
                    record = handout.ahead
                    if record is not None:
                        handout.ahead = None
                    elif (record := next(rows, None)) is None:
                        break
                    offset = record.offset
                    if offset in left_out:
                        continue
                    # Looked at last: this process may stand still before it.
                    if offset >= looked_below or clock() >= self._resume_at:
                        handout.put_back(record)
                        break
                    handout.last_offset = offset
                # As `_begin` had it made; a call of `cast` a record would cost as much as its ack.
                yield record  # type: ignore[misc]

    def deliver_acks(self) -> None:
        """Bring to the grants what threads left for them."""
        for box in self._boxes.values():
            box.deliver()

    def _begin(self, handout: "Handout") -> None:
        super()._begin(handout)
        handout.taker = self.box_of(handout.grant)
        # Whoever takes them knows what they are.
        handout.kind = cast("type[AsyncRecord]", DeliveredRecord)

    async def _taken(self) -> AsyncGenerator[AsyncRecord, None]:
        async for record in super()._taken():
            yield as_kind(AsyncRecord, record)

    def _take(self, handout: "Handout", n: int, records: list[AsyncRecord]) -> None:
        with self.hand_out:
            super()._take(handout, n, records)

    def _stop_current(self) -> None:
        with self.hand_out:
            super()._stop_current()

    def set_paused(self, paused: bool) -> None:
        """From now on hand out nothing new, whichever way it is taken; or hand out again."""
        with self.hand_out:
            super().set_paused(paused)

    def ended(self, grant: "HeldGrant") -> None:
        """A grant is over; acks that still come for it are only counted."""
        box = self._boxes.pop(grant, None)
        if box is not None:
            box.deliver()
        super().ended(grant)


def _piece_of(handout: "Handout") -> Piece:
    rows = handout.rows_behind()
    handout.look_at_next()
    return handout, rows


class Subscription:
    """Made by `Client.subscribe`; open inside its ``with`` block."""

    def __init__(self, portal: "Portal", pieces: Pieces) -> None:
        self._portal = portal
        self._pieces = pieces
        pieces.serve(portal)

    @property
    def group(self) -> str:
        """The group's name, once subscribed."""
        return self._pieces.group

    @property
    def declared(self) -> bool:
        """Whether the group was created by this use."""
        return self._pieces.declared

    @property
    def late_acks(self) -> int:
        """How many acks came after their stream was taken back; they were dropped."""
        self._portal.call(self._pieces.deliver_acks)
        return self._pieces.late_acks

    @property
    def state(self) -> str:
        """``standby``, ``active``, ``stalled`` or ``paused``, as the daemon last said."""
        return self._pieces.state

    def __enter__(self) -> Self:
        """Subscribe and wait until the daemon has taken it.

        Raises:
            DssError: as for the subscription of `dss_client`.
        """
        self._portal.run(self._pieces.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave: unacknowledged records of a group go to its other members."""
        self._portal.call(self._pieces.deliver_acks)
        self._portal.run(self._pieces.__aexit__(kind, error, trace))

    def __iter__(self) -> Iterator[DeliveredRecord]:
        """Records, one by one, until `drain` or a final error.

        Raises:
            SessionTakenOver: a newer connection uses the client id.
            GroupDestroyed: the group was removed.
        """
        return self._pieces.records()

    def batches(self) -> Iterator[DeliveredBatch]:
        """What came, as columns; until `drain` or a final error.

        Raises:
            SessionTakenOver: a newer connection uses the client id.
            GroupDestroyed: the group was removed.
        """
        return self._portal.iterate(self._pieces.batches_for_threads())

    def fetch(self, n: int, timeout: float | None = None) -> list[DeliveredRecord]:
        """Up to ``n`` records: as soon as there are ``n``, or what came within ``timeout`` seconds.

        Raises:
            SessionTakenOver: a newer connection uses the client id.
            GroupDestroyed: the group was removed.
        """
        self._portal.call(self._pieces.deliver_acks)
        return cast("list[DeliveredRecord]", self._portal.run(self._pieces.fetch(n, timeout)))

    def run(self, handler: Callable[[DeliveredRecord], None], *, concurrency: int = 16) -> None:
        """Call the handler for every record, in threads: acks when it returns, naks when it raises.

        Records of one key of a stream are handled one after the other, in order; at most
        ``concurrency`` handlers run at once. Returns after `drain`.

        Raises:
            SessionTakenOver: a newer connection uses the client id.
            GroupDestroyed: the group was removed.
        """
        pieces = self._pieces
        with ThreadPoolExecutor(concurrency, thread_name_prefix="dss handler") as threads:

            async def handle(record: AsyncRecord) -> None:
                try:
                    own = as_kind(DeliveredRecord, record)
                    await asyncio.get_running_loop().run_in_executor(threads, handler, own)
                finally:
                    pieces.deliver_acks()

            self._portal.run(pieces.run(handle, concurrency=concurrency))

    def unsubscribe(self) -> None:
        """Leave for good: a private subscription is forgotten, a group goes on without this one."""
        self._portal.call(self._pieces.deliver_acks)
        self._portal.run(self._pieces.unsubscribe())

    def drain(self) -> None:
        """Take no more: iteration ends, what was acknowledged is settled."""
        self._portal.call(self._pieces.deliver_acks)
        self._portal.run(self._pieces.drain())

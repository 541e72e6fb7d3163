"""What goes to the client now, and what is read for it: turns of streams within the credit.

While any credit is left, the next frame is sent whole. So a large frame waits no longer than a
small one, and a client that acks only once it holds its whole credit in records gets that many.
Invariant: each record sent takes credit once, and gives it back once. This module does not know the
frame format: it is given the function that cuts frames.
"""

from collections.abc import Callable, Sequence

from dss_core.progress import Progress
from dssd.machines.delivery.credit import Account, Credit
from dssd.machines.delivery.events import ChunkRead, Deliver, DeliveryEffect, Read
from dssd.machines.delivery.fairness import RoundRobin
from dssd.machines.delivery.frame_plan import CreditLeft, CutFrames
from dssd.machines.delivery.outstanding import GivenBack
from dssd.machines.delivery.stream import DeliveredStream


class Dispatch:
    """Sends and reads for one window.

    ``went`` is called with a stream that had its turn to send and its progress before that;
    ``offer`` lets a stream take its turn to read.
    """

    def __init__(
        self,
        cut_frames: CutFrames,
        credit: Credit,
        turns: RoundRobin,
        *,
        went: Callable[[DeliveredStream, Progress], None],
        offer: Callable[[DeliveredStream], None],
    ) -> None:
        self._cut_frames = cut_frames
        self._credit = credit
        self._turns = turns
        self._went = went
        self._offer = offer

    def send(self, effects: list[DeliveryEffect]) -> None:
        """Send what was read, as far as the credit goes."""
        holding = self._turns.holding
        stuck = 0
        while stuck < len(holding):
            stream = holding[0]
            before = stream.records.progress
            delivery = self._send_from(stream)
            if delivery is not None:
                effects.append(delivery)
            self._went(stream, before)
            if stream.chunk is None:
                self._turns.sent(stream)
                self._offer(stream)
                stuck = 0
            else:
                holding.rotate(-1)
                stuck = stuck + 1 if delivery is None else 0

    def _send_from(self, stream: DeliveredStream) -> Deliver | None:
        chunk = stream.chunk
        assert chunk is not None
        again = stream.resending
        if not again and stream.capped():
            stream.forget_chunk()
            return None
        account = self._turns.share(stream.subscription).account
        room = self._credit.left(account, again=again)
        if room.records <= 0 or room.bytes <= 0:
            if not again and stream.records.resting.due_ranges:
                # Redeliveries do not wait behind new records that have no credit.
                stream.forget_chunk()
            return None
        out = stream.records.out
        records, size = out.records, out.bytes
        delivery = self._next_delivery(stream, chunk, room)
        if delivery is not None:
            self._credit.take(account, out.records - records, out.bytes - size, again=again)
        return delivery

    def _next_delivery(
        self, stream: DeliveredStream, chunk: ChunkRead, room: CreditLeft
    ) -> Deliver | None:
        if stream.keyed is not None:
            stream.keyed.meet(chunk)
        fresh = stream.fresh
        if stream.spans is None:
            whole = chunk.records <= room.records and len(chunk.frames) <= room.bytes
            if fresh and whole:
                return stream.send_whole()
            stream.spans = self._cut_frames(chunk.frames)
        if fresh:
            delivery = stream.send_frames(stream.spans, room)
            if delivery is not None:
                return delivery
        return stream.send_part(stream.spans, room)

    def credit_back(self, stream: DeliveredStream, freed: Sequence[GivenBack]) -> None:
        """These records are no longer in flight: their credit may be used again."""
        account = self._turns.share(stream.subscription).account
        for again in (False, True):
            records = size = 0
            for sent in freed:
                if sent.again is again:
                    records += sent.records
                    size += sent.bytes
            if records:
                self._credit.take(account, -records, -size, again=again)

    def read(self, effects: list[DeliveryEffect]) -> None:
        """Ask for reads of the streams whose turn it is, as far as they may send."""
        while (turn := self._turns.next_reader(self._may_send)) is not None:
            stream, offset = turn
            size = stream.read_bytes_max()
            effects.append(Read(stream.grant, stream.stream, offset, size))

    def _may_send(self, account: Account, again: bool) -> bool:
        room = self._credit.left(account, again=again)
        return room.records > 0 and room.bytes > 0

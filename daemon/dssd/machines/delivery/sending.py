"""The sending of one grant's stream: what of a chunk goes to the client, and with which mark.

A chunk that is new and whole goes as it is. Of any other only what is wanted goes, in deliveries of
one mark each; `Marking` knows what was handed out before, and how much of that may be out at a
time. Invariant: what is sent is noted as out. This layer must not know what the client says.
"""

from dss_core.progress import (
    Ranges,
    clipped,
    complement,
    normalised,
    without,
)
from dssd.machines.delivery.events import ChunkRead, Deliver
from dssd.machines.delivery.frame_plan import CreditLeft, FrameSpans, Plan, plan, whole_frames
from dssd.machines.delivery.outstanding import SentRange
from dssd.machines.delivery.reading import StreamReading


class StreamSending(StreamReading):
    """A grant whose chunks are sent."""

    @property
    def fresh(self) -> bool:
        """Whether all that is left of the chunk is new: none is masked, acked or suspect."""
        chunk = self.chunk
        return (
            chunk is not None
            and not chunk.mask
            and not self.resending
            and self.chunk_at >= self.marking.fresh_from
        )

    def send_whole(self) -> Deliver:
        """Send a fresh chunk as it is."""
        chunk = self.chunk
        assert chunk is not None
        return self._send_fresh(chunk, chunk.frames, self.chunk_end)

    def send_frames(self, spans: FrameSpans, room: CreditLeft) -> Deliver | None:
        """Send what the credit allows of a fresh chunk; None where it is cut within a frame."""
        chunk = self.chunk
        assert chunk is not None
        chosen = whole_frames(spans, (self.chunk_at, self.chunk_end), room)
        if chosen is None:
            return None
        begin, end = chosen
        frames = chunk.frames[spans.at[begin] : spans.at[end]]
        return self._send_fresh(chunk, frames, spans.base[end])

    def _send_fresh(self, chunk: ChunkRead, frames: bytes, end: int) -> Deliver:
        start = self.chunk_at
        self.out.add(SentRange(start, end, len(frames)))
        self._advance(chunk, end)
        return Deliver(self.grant, frames, (), False, 1, start, end)

    def send_part(self, spans: FrameSpans, room: CreditLeft) -> Deliver | None:
        """Send what the credit allows of the chunk, or nothing; the chunk ends when it is through.

        The chunk is dropped where the stream itself must wait.
        """
        chunk = self.chunk
        assert chunk is not None
        start, end = self.chunk_at, self.chunk_end
        closed = self._closed(chunk, start, end)
        if self.resending:
            return self._send_again(chunk, spans, closed, room)
        wanted = complement(closed, start, end)
        if self.held_back:
            wanted = without(wanted, self.held_back)
        if not wanted:
            self._advance(chunk, end)
            return None
        stretch = self.marking.first_stretch(wanted, self.frontier, self.out)
        if stretch.records_max <= 0:
            self._held_at = self.out.suspects
            self.forget_chunk()
            return None
        planned = plan(spans, wanted, stretch, room)
        self._note_out(planned)
        sent_to = planned.picked[-1][1]
        self._advance(chunk, end if sent_to >= wanted[-1][1] else sent_to)
        return self._delivery(chunk, planned)

    def _closed(self, chunk: ChunkRead, start: int, end: int) -> Ranges:
        """What of the chunk is acknowledged, or not for the user."""
        mask, acked = clipped(chunk.mask, start, end), clipped(self.progress.ranges, start, end)
        if self.progress.floor <= start and not (mask and acked):
            return mask or acked
        return normalised((*mask, (start, self.progress.floor), *acked))

    def _send_again(
        self, chunk: ChunkRead, spans: FrameSpans, closed: Ranges, room: CreditLeft
    ) -> Deliver | None:
        """Send what is due in the chunk and has the mark of the first of it."""
        start, end = self.chunk_at, self.chunk_end
        due = self.resting.due_in(start, end)
        wanted = without(due, closed)
        if not wanted:
            self._took_again(chunk, ())
            return None
        same, stretch = self.marking.of_one_mark(wanted, self.frontier)
        planned = plan(spans, same, stretch, room)
        self._note_out(planned)
        self._no_longer_held_back(planned.picked)
        self._took_again(chunk, without(wanted, planned.picked))
        return self._delivery(chunk, planned)

    def _took_again(self, chunk: ChunkRead, left: Ranges) -> None:
        """What was due in the chunk went, but for what is left."""
        if chunk.mask:
            self.consumed.reject(clipped(chunk.mask, self.chunk_at, self.chunk_end))
        self.resting.took(self.chunk_at, self.chunk_end, left)
        if left:
            self.chunk_at = left[0][0]
        else:
            self.forget_chunk()

    def _delivery(self, chunk: ChunkRead, planned: Plan) -> Deliver:
        if planned.size == len(chunk.frames):
            frames = chunk.frames
        elif len(planned.pieces) == 1:
            frames = chunk.frames[slice(*planned.pieces[0])]
        else:
            frames = b"".join([chunk.frames[first:last] for first, last in planned.pieces])
        return Deliver(
            self.grant,
            frames,
            planned.mask,
            planned.redelivered,
            planned.attempt,
            planned.base,
            planned.end,
        )

    def _note_out(self, planned: Plan) -> None:
        again = self.resending
        suspects_max = 0 if again else self.marking.suspects_max(planned.attempt, planned.doubts)
        left = planned.size
        for start, end, unsure in self.marking.sendings(planned.picked, self.frontier, again):
            # Each range on its own: what is settled one by one is found without a look at the rest.
            size = planned.size * (end - start) // planned.records
            left -= size
            last = left if end == planned.picked[-1][1] else 0
            sent = SentRange(start, end, size + last, unsure, suspects_max, again)
            self.out.add(sent)

    def _advance(self, chunk: ChunkRead, to: int) -> None:
        if chunk.mask:
            self.consumed.reject(clipped(chunk.mask, self.chunk_at, to))
        done = to >= self.chunk_end
        if done:
            self.consumed.pass_by(chunk, ((to, chunk.next),))
            to = chunk.next
        self.cursor = self.sent = to
        self.chunk_at = to
        if done:
            self._note_end(chunk)
            self.forget_chunk()

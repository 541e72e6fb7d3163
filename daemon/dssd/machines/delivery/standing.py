"""The state of one offset of a held stream, as the delivery window of its holder knows it.

Invariant: it changes nothing, and gives any offset exactly one state: done, out, waiting for its
time, or not read yet. Times are the machine's. It does not know what the client keeps back for the
order of a key, nor why an offset is done.
"""

from dataclasses import dataclass
from enum import Enum

from dssd.machines.delivery.fairness import Share
from dssd.machines.delivery.frame_plan import CreditLeft
from dssd.machines.delivery.stream import DeliveredStream
from dssd.machines.messages import Stall


class Place(Enum):
    """Where the offset is."""

    DONE = "done"
    """Acknowledged, or passed over."""
    HANDED_OUT = "handed_out"
    """The user has it."""
    SENT = "sent"
    """The client has it, and has not said that it handed it out."""
    RESTING = "resting"
    """It comes again at a time."""
    DUE = "due"
    """It is sent again at its next turn."""
    MOVING = "moving"
    """It failed, and waits to be moved to a queue of the group."""
    SUSPECT = "suspect"
    """Clients vanished with it: it is sent once no other suspect is out."""
    READ = "read"
    """It was read, and is not sent yet."""
    NOT_READ = "not_read"
    """The cursor has not reached it."""
    GIVEN_BACK = "given_back"
    """The stream is being given back: the record is sent under the next grant."""


class Hindrance(Enum):
    """Why nothing more of the stream is sent now."""

    NONE = "none"
    ENDING = "ending"
    """The stream is being given back."""
    PAUSED = "paused"
    SUSPENDED = "suspended"
    """The leader does not answer the session."""
    UNREADABLE = "unreadable"
    DAMAGED = "damaged"
    CAPPED = "capped"
    """Too many acknowledged ranges lie above the floor."""
    SUSPECTS_OUT = "suspects_out"
    """As many records with earlier attempts are out as may be."""
    NO_CREDIT = "no_credit"


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of one offset."""

    place: Place
    hindrance: Hindrance
    """Why the record is not sent now, if it is not out."""
    floor: int
    cursor: int
    """How far the stream is read."""
    out: int
    """How many records of the stream are sent and not settled."""
    attempts: int = 0
    """How often it was handed out, this time included."""
    since_ms: int | None = None
    """When the client handed it out, or asked for more time for it."""
    until_ms: int | None = None
    """When its ack wait or its rest ends, or its move is tried again."""
    are_queues_full: bool = False
    """Nothing more may leave the stream for the queues of the group."""
    alone: int | None = None
    """The suspect that is out or on its way: the next one comes after it."""


def standing_of(stream: DeliveredStream, offset: int, share: Share, room: CreditLeft) -> Standing:
    """The state of the offset; ``share`` and ``room`` are those of its subscription."""
    place, since_ms, until_ms = _place(stream, offset)
    attempts = 0
    if place is not Place.DONE:
        attempts = stream.records.marking.counted(offset, offset + 1, stream.records.frontier)[0][2]
    return Standing(
        place,
        _hindrance(stream, share, room),
        stream.records.progress.floor,
        stream.cursor,
        stream.records.out.records,
        attempts,
        since_ms,
        until_ms,
        stream.lane is not None and stream.lane.is_full,
        stream.records.waiting.alone,
    )


def _place(stream: DeliveredStream, offset: int) -> tuple[Place, int | None, int | None]:
    if stream.records.progress.is_acked(offset):
        return Place.DONE, None, None
    if stream.records.out.within(offset, offset + 1):
        return _out(stream, offset)
    return _waiting(stream, offset) or (_ahead(stream, offset), None, None)


def _waiting(stream: DeliveredStream, offset: int) -> tuple[Place, int | None, int | None] | None:
    """The state of a record that waits to be sent again, or to be moved; None if it does not."""
    lane = stream.lane
    if lane is not None and lane.moves(stream.level, offset):
        return Place.MOVING, None, lane.again_ms
    until_ms = stream.records.resting.until(offset)
    if until_ms is not None:
        return Place.RESTING, None, until_ms
    if stream.records.resting.due_in(offset, offset + 1):
        return Place.DUE, None, None
    held = stream.records.waiting.held(offset)
    if held is None:
        return None
    suspect, due_ms = held
    return Place.SUSPECT if suspect else Place.RESTING, None, due_ms


def _ahead(stream: DeliveredStream, offset: int) -> Place:
    if offset < stream.cursor or stream.records.ending:
        return Place.GIVEN_BACK
    if stream.chunk is not None and not stream.resending and offset < stream.chunk_end:
        return Place.READ
    return Place.NOT_READ


def _out(stream: DeliveredStream, offset: int) -> tuple[Place, int | None, int | None]:
    if stream.records.out.is_unsure(offset):
        # An ack wait of the earlier sending may still run; it says nothing of this one.
        return Place.SENT, None, None
    wait = stream.records.waits.at(offset)
    if wait is not None:
        return Place.HANDED_OUT, *wait
    if offset < stream.records.frontier or stream.records.marking.is_early(offset):
        return Place.HANDED_OUT, None, None
    return Place.SENT, None, None


def _hindrance(stream: DeliveredStream, share: Share, room: CreditLeft) -> Hindrance:
    troubles = {Stall.UNREADABLE: Hindrance.UNREADABLE, Stall.DAMAGED: Hindrance.DAMAGED}
    each = (
        (stream.records.ending, Hindrance.ENDING),
        (share.paused, Hindrance.PAUSED),
        (share.suspended, Hindrance.SUSPENDED),
        (stream.trouble.stall in troubles, troubles.get(stream.trouble.stall, Hindrance.NONE)),
        (stream.capped(), Hindrance.CAPPED),
        (stream.suspects_hold_cursor(), Hindrance.SUSPECTS_OUT),
        (room.records <= 0 or room.bytes <= 0, Hindrance.NO_CREDIT),
    )
    return next((hindrance for holds, hindrance in each if holds), Hindrance.NONE)

"""Where a group or a read begins, as callers write it.

``None`` leaves it to the daemon. Text is ``"now"``, ``"earliest"``, ``"=OFFSET"`` or a time of the
shared grammar (``-15m``, a date, RFC 3339, ``@unix``); a number is an offset of a single stream.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from dss_core.errors import IllegalArgument

if TYPE_CHECKING:
    from dss_api.v1 import types_pb2

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Start = str | int | datetime | None


def start_to_wire(start: Start) -> "types_pb2.Start | None":
    """The start as the wire has it; none where the daemon decides.

    Raises:
        IllegalTime: the text is neither a word nor a time.
        IllegalArgument: the offset is negative.
    """
    from dss_api.v1 import types_pb2

    match start:
        case None:
            return None
        case "now":
            return types_pb2.Start(now=True)
        case "earliest":
            return types_pb2.Start(earliest=True)
        case _ if (offset := offset_in(start)) is not None:
            return types_pb2.Start(offset=offset)
        case _:
            return types_pb2.Start(time_us=time_us(start))


def offset_in(place: Start) -> int | None:
    """The offset, where the place is one.

    Raises:
        IllegalArgument: it is negative.
    """
    match place:
        case int():
            return _offset(place)
        case str() if place.startswith("=") and place[1:].isdecimal():
            return _offset(int(place[1:]))
        case _:
            return None


def time_us(moment: Start) -> int:
    """A moment as microseconds since 1970.

    Raises:
        IllegalTime: the text is not a time.
        IllegalArgument: it is no moment at all.
    """
    if isinstance(moment, datetime):
        return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    from dss_core.times import parse_time

    if not isinstance(moment, str):
        raise IllegalArgument(argument=f"{moment}", rule="a moment is needed here")
    parsed = parse_time(moment, now_us=time.time_ns() // 1_000)
    if not isinstance(parsed, int):
        raise IllegalArgument(argument=f"the time {moment}", rule="a moment is needed here")
    return parsed


def _offset(offset: int) -> int:
    if not 0 <= offset < 1 << 63:
        raise IllegalArgument(argument=f"offset {offset}", rule="it counts from 0")
    return offset

"""Where a read or a group begins, off the wire."""

from dss_api.v1 import types_pb2
from dss_core.errors import IllegalArgument
from dssd.machines.start_point import OFFSET_MAX, AtOffset, AtTime, Earliest, Now, StartPoint


def start_from(start: types_pb2.Start) -> StartPoint:
    """The start that a message names.

    Raises:
        IllegalArgument: it names none, or its number is out of bounds.
    """
    match start.WhichOneof("start"):
        case "now":
            return Now()
        case "earliest":
            return Earliest()
        case "time_us" if 0 <= start.time_us <= OFFSET_MAX:
            return AtTime(start.time_us)
        case "offset" if start.offset <= OFFSET_MAX:
            return AtOffset(start.offset)
        case None:
            raise IllegalArgument(argument="start", rule="now, earliest, a time or an offset")
        case kind:
            raise IllegalArgument(argument=f"start {kind}", rule=f"0 to {OFFSET_MAX}")

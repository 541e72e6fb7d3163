"""Changes by operators, as they come from a caller.

Invariant: a change that comes from the wire is untrusted; what does not fit is refused here or by
its kind, and nothing is done.
"""

from google.protobuf.message import Message

from dss_api.changes import change_from
from dss_api.v1 import operations_pb2
from dss_core.changes import Change
from dss_core.errors import IllegalArgument
from dssd.machines.start_point import OFFSET_MAX


def asked_change(message: operations_pb2.Change) -> Change:
    """The change that a caller asks for.

    Raises:
        IllegalArgument: it is none, or a number in it is larger than the store can keep.
    """
    _check_numbers(message)
    return change_from(message)


def _check_numbers(message: Message) -> None:
    for field, value in message.ListFields():
        for each in value if field.is_repeated else (value,):
            if isinstance(each, Message):
                _check_numbers(each)
            elif isinstance(each, int) and each > OFFSET_MAX:
                name = f"{field.name} {each}"
                raise IllegalArgument(argument=name, rule=f"it is at most {OFFSET_MAX}")

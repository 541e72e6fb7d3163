"""Client values with the fields that a test is about; the others are those of an empty message.

So a new field changes no test that is not about it.
"""

from dataclasses import replace
from typing import Any, TypeVar

from google.protobuf.message import Message

from dss_api.values import decoded

Value = TypeVar("Value")


def blank(kind: type[Value], message: type[Message], /, **fields: object) -> Value:
    """A value with these fields."""
    made: Any = decoded(message(), kind)
    value: Value = replace(made, **fields)
    return value

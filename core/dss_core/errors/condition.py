"""The base class of conditions, their registry, and how an error from the wire is raised again.

Invariant: a code names one class, forever. The only condition defined here is the one for a code
that this version does not know.
"""

import string
from collections.abc import Mapping
from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What a process tells its caller."""

    OK = 0
    FAILED = 1
    """The operation, or any item of it, failed."""
    USAGE = 2
    UNREACHABLE = 3
    TIMEOUT = 4
    NOT_FOUND = 5
    CONFLICT = 6
    DENIED = 7
    DECLINED = 8
    CHANGES_PENDING = 10
    IO_ERROR = 74
    LOCKED = 75
    CONFIG = 78
    INTERRUPTED = 130
    PIPE_CLOSED = 141


class DssError(Exception):
    """A condition with a stable code. Fields are facts, as strings on the wire."""

    code: ClassVar[str] = ""
    sentence: ClassVar[str] = ""
    """Template of the message over the fields."""
    hint: ClassVar[str] = ""
    """Template of what to do next, over the fields; may be empty."""
    grpc_status: ClassVar[str] = "UNKNOWN"
    """Name of the gRPC status that carries it."""
    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    definite: ClassVar[bool] = True
    """Whether it is certain that the request has done nothing."""

    def __init__(self, /, **fields: object) -> None:
        self.fields: dict[str, str] = {name: _said(value) for name, value in fields.items()}
        super().__init__(_rendered(self.sentence, self.fields))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickling and copying keep class and fields."""
        return from_wire, (self.code, self.fields, str(self))

    @property
    def message(self) -> str:
        """One sentence: what happened."""
        return str(self)

    @property
    def hint_text(self) -> str:
        """What to do next; may be empty."""
        return _rendered(self.hint, self.fields)


UNKNOWN = "?"
"""What stands in for a field that an older peer did not send, or that nobody knows."""


def _said(value: object) -> str:
    return UNKNOWN if value is None else str(value)


def _rendered(template: str, fields: Mapping[str, str]) -> str:
    """The template, filled in; a field that ends with a full stop does not lead to a second one."""
    pieces: list[str] = []
    for literal, name, _, _ in string.Formatter().parse(template):
        is_ended = bool(pieces) and pieces[-1] != UNKNOWN and pieces[-1].endswith((".", "?", "!"))
        literal = literal.removeprefix(".") if is_ended else literal
        pieces += [literal] if name is None else [literal, fields.get(name, UNKNOWN)]
    return "".join(pieces)


REGISTRY: dict[str, type[DssError]] = {}


def registered(leaf: type[DssError]) -> type[DssError]:
    """Register a leaf under its code. A code that is taken is a programmer's error."""
    assert leaf.code not in REGISTRY, leaf.code
    REGISTRY[leaf.code] = leaf
    return leaf


def from_wire(code: str, fields: Mapping[str, str], message: str) -> DssError:
    """The error that a peer sent: its own class where we know the code."""
    leaf = REGISTRY.get(code)
    if leaf is None:
        return UnknownCondition(code=code, text=message)
    return leaf(**fields)


@registered
class UnknownCondition(DssError):
    """A code this version does not know. Fields: code, text."""

    code = "DSS5010"
    sentence = "The daemon reported {code}: {text}"
    hint = "The daemon is newer than this program: update it."
    grpc_status = "UNKNOWN"
    exit_code = ExitCode.FAILED
    definite = False

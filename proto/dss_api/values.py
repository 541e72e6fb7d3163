"""Messages as frozen values and back, field by field of the same name.

A value's fields are those of its message, or some of them. By rule: a field that may be absent is
None where it is; a repeated one is a tuple; bytes are hexadecimal where the value has a text. An
enum is its last word in lower case; a number without a word is refused, unless the value takes any
text. A number or text that is zero is the default of the value's field, where it has one. A oneof
is left to the caller. Invariant: what was encoded is decoded as the same value. This module knows
no message by name.
"""

from collections.abc import Callable, Container
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from dss_core.errors import IllegalArgument
from dss_core.progress import Progress, normalised

if TYPE_CHECKING:  # whoever has a message has loaded it
    from google.protobuf.message import Message

Value = TypeVar("Value")
Wired = TypeVar("Wired", bound="Message")
Read = Callable[[Any], Any]
Descriptor = Any
"""Of a message, a field or an enum; protobuf has several classes of each."""
Kind = Any
"""A class of values: a dataclass or a named tuple."""
_UNSPECIFIED = "UNSPECIFIED"


def decoded(message: "Message", kind: type[Value], **told: Any) -> Value:  # noqa: ANN401 - of any type
    """The message as a value; a field that is told is not looked for in the message.

    Raises:
        IllegalArgument: an enum has a number that is not known, or none where one is needed.
    """
    made: Kind = kind
    value: Value
    if told:
        readers = _readers(made, message.DESCRIPTOR, frozenset(told))
        names = (each.name for each in fields(made) if each.name not in told)
        value = made(**dict(zip(names, (read(message) for read in readers), strict=True)), **told)
    else:
        value = made(*[read(message) for read in _readers(made, message.DESCRIPTOR)])
    return value


def encoded(value: object, kind: "type[Wired]") -> "Wired":
    """The value as a message; what is None stays absent.

    Raises:
        IllegalArgument: a word is none of its enum.
        ValueError: a number or a text does not fit its field.
    """
    return kind(**_given(value, kind.DESCRIPTOR))


def message_of(kind: "type[Wired]", /, *values: object, **told: Any) -> "Wired":  # noqa: ANN401
    """A message of what it has in common with the values, the first one first, and of what is told.

    Raises:
        IllegalArgument: a word is none of its enum.
        ValueError: a number or a text does not fit its field.
    """
    for value in values:
        told = _given(value, kind.DESCRIPTOR, told) | told
    return kind(**told)


def _given(value: Any, into: Descriptor, told: Container[str] | None = None) -> dict[str, Any]:  # noqa: ANN401
    """The fields of a value; where some are told, only those of the message, without these."""
    if isinstance(value, Progress):
        return {"floor": value.floor, "ranges": [_given(each, into) for each in value.ranges]}
    if type(value) is tuple:
        return dict(zip(("start", "end"), value, strict=True))
    kind: Kind = type(value)
    given = {}
    for name, write in _writers(kind, into, told is not None):
        if told and name in told:
            continue
        each = getattr(value, name)
        if each is not None:
            given[name] = write(each)
    return given


@cache
def _writers(
    kind: Kind, into: Descriptor, only_shared: bool
) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """What writes each field of a value."""
    names = [each.name for each in fields(kind)] if is_dataclass(kind) else kind._fields
    left_out = set(names) - set(into.fields_by_name) if only_shared else into.oneofs_by_name
    return tuple(
        (name, _writer(into.fields_by_name[name])) for name in names if name not in left_out
    )


def _writer(into: Descriptor) -> Callable[[Any], Any]:
    if into.enum_type is not None:
        return lambda value: (
            value if isinstance(value, int) else number_of(into.enum_type, into.name, value)
        )
    if into.type == into.TYPE_BYTES:
        return lambda value: bytes.fromhex(value) if isinstance(value, str) else value
    if into.message_type is None or into.message_type.GetOptions().map_entry:
        return lambda value: value
    message = into.message_type
    if into.is_repeated:
        return lambda values: [_given(each, message) for each in values]
    return lambda value: _given(value, message)


@cache
def _readers(
    kind: Kind, descriptor: Descriptor, told: frozenset[str] = frozenset()
) -> tuple[Read, ...]:
    """What reads each field of a value, in their order, but for those that are told."""
    hints = get_type_hints(kind)
    wanted = (each for each in fields(kind) if each.name not in told)
    return tuple(_reader(each, hints[each.name], descriptor) for each in wanted)


def _reader(field: Field[Any], hint: Kind, descriptor: Descriptor) -> Read:
    if field.name in descriptor.oneofs_by_name:
        return lambda _: None
    source = descriptor.fields_by_name[field.name]
    inner = _inner(hint)
    read = _plain_reader(field, inner, source)
    if source.has_presence and _may_be_none(hint):
        name = source.name
        return lambda message: read(message) if message.HasField(name) else None
    return read


def _plain_reader(field: Field[Any], inner: Kind, source: Descriptor) -> Read:
    get: Read = attrgetter(source.name)
    if source.enum_type is not None:
        return _enum_reader(get, field, inner, source)
    if source.message_type is not None:
        return _message_reader(get, inner, source)
    if source.is_repeated:
        return lambda message: tuple(get(message))
    if source.type == source.TYPE_BYTES and inner is str:
        return lambda message: get(message).hex()
    default = field.default
    if not source.has_presence and default is not MISSING and default != source.default_value:
        return lambda message: get(message) or default
    return get


def _enum_reader(get: Read, field: Field[Any], inner: Kind, source: Descriptor) -> Read:
    words, enum = _words(source.enum_type), source.enum_type
    if inner is str and field.default is MISSING:
        return lambda message: words.get(get(message), f"{get(message) or ''}")
    taken = words.values() if inner is str else {each.value for each in inner}
    made = {} if field.default is MISSING else {0: field.default}
    made |= {number: inner(word) for number, word in words.items() if word in taken}

    def read(message: Any) -> Any:  # noqa: ANN401 - any message
        number = get(message)
        if number not in made:
            raise _unknown_word(enum, source.name, number)
        return made[number]

    return read


def _message_reader(get: Read, inner: Kind, source: Descriptor) -> Read:
    if source.message_type.GetOptions().map_entry:
        return lambda message: dict(sorted(get(message).items()))
    if not source.is_repeated:
        return _value_reader(get, inner, source.message_type)
    each = _value_reader(lambda message: message, get_args(inner)[0], source.message_type)
    return lambda message: tuple(map(each, get(message)))


def _value_reader(get: Read, kind: Kind, descriptor: Descriptor) -> Read:
    if kind is Progress:
        return lambda message: _progress(get(message))
    origin: Kind = get_origin(kind)
    if origin is tuple:  # a range
        return lambda message: (get(message).start, get(message).end)
    readers = _readers(kind, descriptor)

    def read(message: Any) -> Any:  # noqa: ANN401 - any message
        found = get(message)
        return kind(*[each(found) for each in readers])

    return read


def _progress(message: Any) -> Progress:  # noqa: ANN401 - of any message that has these fields
    if not message.ranges:
        return Progress(message.floor)
    ranges = normalised((each.start, each.end) for each in message.ranges)
    return Progress(message.floor).with_acked(ranges)


def _inner(hint: Kind) -> Kind:
    """The type beside None."""
    origin: Kind = get_origin(hint)
    if origin in (Union, UnionType):
        [hint] = (each for each in get_args(hint) if each is not type(None))
    return hint


def _may_be_none(hint: Kind) -> bool:
    return type(None) in get_args(hint)


@cache
def _words(enum: Descriptor) -> dict[int, str]:
    """The words of an enum by their numbers, without the unspecified one."""
    prefix = enum.values_by_number[0].name.removesuffix(_UNSPECIFIED)
    return {
        each.number: each.name.removeprefix(prefix).lower() for each in enum.values if each.number
    }


def word_of(enum: Descriptor, argument: str, number: int) -> str | None:
    """The word of a number, None of 0.

    Raises:
        IllegalArgument: it is none of the enum.
    """
    if number and number not in _words(enum):
        raise _unknown_word(enum, argument, number)
    return _words(enum).get(number)


def number_of(enum: Descriptor, argument: str, word: str | None) -> Any:  # noqa: ANN401 - an enum's
    """The number of a word, 0 where none is given.

    Raises:
        IllegalArgument: it is none of the enum.
    """
    if word is None:
        return 0
    for number, known in _words(enum).items():
        if word == known:
            return number
    raise _unknown_word(enum, argument, word)


def _unknown_word(enum: Descriptor, argument: str, given: object) -> IllegalArgument:
    words = " or ".join(_words(enum).values())
    return IllegalArgument(argument=f"{argument} {given}", rule=f"it is {words}")

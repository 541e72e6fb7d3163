"""Parsers of messages: what a client sends is decoded, asked for its demands, and made into values.

Invariant: every method that is served stands here, by the type of its request.
"""

import pkgutil
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

import dss_api.v1
from dss_core.errors import DssError
from dss_sim.fuzz.parser import Parser
from dssd.rpc.demands import demands_of
from dssd.rpc.denials import NOTHING_KNOWN
from dssd.rpc.operation_messages import asked_change
from dssd.rpc.principal import METHOD_ROLES
from dssd.rpc.session_items import items_from, opening_from

for _module in pkgutil.iter_modules(dss_api.v1.__path__):
    import_module(f"dss_api.v1.{_module.name}")  # so that all descriptors are known

REFUSALS = (DssError, DecodeError)
_DEPTH_MAX = 3
_TEXTS = {"stream": "orders/0/0", "filter": "$share/g/orders/#", "group": "g", "subject": "a/b"}


def _requests() -> dict[str, type[Message]]:
    """By method: the message that a call of it brings."""
    found: dict[str, type[Message]] = {}
    for method in METHOD_ROLES:
        service, _, name = method.strip("/").partition("/")
        if service.startswith("dss_api."):
            described = descriptor_pool.Default().FindServiceByName(service).methods_by_name[name]
            found[method] = message_factory.GetMessageClass(described.input_type)
    return found


def filled(kind: type[Message], depth: int = 0) -> Message:
    """A message with something in each of its fields."""
    made = kind()
    for field in kind.DESCRIPTOR.fields:
        _fill(made, field, depth)
    return made


def _fill(made: Message, field: Any, depth: int) -> None:  # noqa: ANN401 - of either kind of protobuf
    value: object
    if field.message_type is not None:
        if depth == _DEPTH_MAX or field.message_type.GetOptions().map_entry:
            return
        inner = filled(message_factory.GetMessageClass(field.message_type), depth + 1)
        own = getattr(made, field.name)
        own.append(inner) if field.is_repeated else own.CopyFrom(inner)
        return
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        text = _TEXTS.get(field.name, "orders")
        value = text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
    else:
        value = 1
    if field.is_repeated:
        getattr(made, field.name).append(value)
    else:
        setattr(made, field.name, value)


def _each_of_a_choice(kind: type[Message]) -> Sequence[bytes]:
    """An example for each field of a oneof; the whole message where it has none."""
    choices = [
        field for oneof in kind.DESCRIPTOR.oneofs for field in oneof.fields if len(oneof.fields) > 1
    ]
    found = [filled(kind).SerializeToString()]
    for field in choices:
        made = kind()
        _fill(made, field, 0)
        found.append(made.SerializeToString())
    return found


def _asked(method: str, kind: type[Message]) -> Callable[[bytes], object]:
    return lambda data: list(demands_of(method, kind.FromString(data), "token:ada", NOTHING_KNOWN))


def _requests_parser(service: str) -> Parser:
    """Of all methods of a service: the first byte says which."""
    asked = [(method, kind) for method, kind in _requests().items() if f".{service}/" in method]

    def examples() -> Sequence[bytes]:
        return [
            bytes([number]) + each
            for number, (_, kind) in enumerate(asked)
            for each in _each_of_a_choice(kind)
            if _is_taken(_asked(asked[number][0], kind), each)
        ]

    def parse(data: bytes) -> object:
        method, kind = asked[(data or b"\0")[0] % len(asked)]
        return _asked(method, kind)(data[1:])

    return Parser(f"requests of {service}", examples, parse, REFUSALS)


def _is_taken(parse: Callable[[bytes], object], data: bytes) -> bool:
    try:
        parse(data)
    except REFUSALS:
        return False
    return True


def _take_item(data: bytes) -> None:
    from dss_api.v1 import sessions_pb2

    message = sessions_pb2.SessionUp.FromString(data)
    if message.WhichOneof("item") == "open":
        opening_from(message.open, "token:ada")
    else:
        list(items_from(message))


def _items() -> Sequence[bytes]:
    from dss_api.v1 import sessions_pb2

    kind = sessions_pb2.SessionUp
    found = _each_of_a_choice(kind)
    return [each for each in found if _is_taken(_take_item, each)]


def _take_change(data: bytes) -> None:
    from dss_api.v1 import operations_pb2

    asked_change(operations_pb2.Change.FromString(data))


def _changes() -> Sequence[bytes]:
    from dss_api.v1 import operations_pb2

    kind = operations_pb2.Change
    found = _each_of_a_choice(kind)
    return [each for each in found if _is_taken(_take_change, each)]


SERVICES = sorted({method.split("/")[1].rpartition(".")[2] for method in _requests()})

MESSAGES: tuple[Parser, ...] = (
    *map(_requests_parser, SERVICES),
    Parser("items of sessions", _items, _take_item, REFUSALS),
    Parser("changes by operators", _changes, _take_change, REFUSALS),
)

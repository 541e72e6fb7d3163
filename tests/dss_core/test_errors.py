"""The registry of conditions: codes, templates, statuses, and the way over the wire."""

import pickle
import re
import string

import pytest

from dss_core.errors import REGISTRY, DssError, ExitCode, TopicNotFound, UnknownCondition, from_wire
from dss_core.ids import StreamId, StreamName

GRPC_STATUSES = {
    "ABORTED",
    "ALREADY_EXISTS",
    "CANCELLED",
    "DATA_LOSS",
    "DEADLINE_EXCEEDED",
    "FAILED_PRECONDITION",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "OUT_OF_RANGE",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "UNAUTHENTICATED",
    "UNAVAILABLE",
    "UNIMPLEMENTED",
    "UNKNOWN",
}


def leaves() -> list[type[DssError]]:
    return list(REGISTRY.values())


def fields_of(leaf: type[DssError]) -> dict[str, str]:
    named = string.Formatter().parse(leaf.sentence + leaf.hint)
    return {name: f"<{name}>" for _, name, _, _ in named if name}


def test_every_condition_is_registered_once() -> None:
    leaves = DssError.__subclasses__()
    leaves += [special for leaf in leaves for special in leaf.__subclasses__()]
    assert {leaf.code for leaf in leaves} == set(REGISTRY)


def test_every_condition_is_complete() -> None:
    for leaf in leaves():
        assert re.fullmatch(r"DSS\d{4}", leaf.code), leaf
        assert leaf.sentence, leaf
        assert leaf.grpc_status in GRPC_STATUSES, leaf
        assert leaf.exit_code in set(ExitCode) - {ExitCode.OK}, leaf
        assert leaf.__doc__, leaf


def test_every_condition_survives_the_wire_and_pickling() -> None:
    for leaf in leaves():
        error = leaf(**fields_of(leaf))
        assert "?" not in error.message + error.hint_text, leaf
        received = from_wire(error.code, error.fields, error.message)
        copied = pickle.loads(pickle.dumps(error))
        for other in (received, copied):
            assert type(other) is leaf
            assert (other.message, other.hint_text) == (error.message, error.hint_text)
            assert other.fields == error.fields


_ODD = re.compile(r"\.\.|[a-z]\?\.|[A-Z][A-Za-z]+\([a-z_]+=|\bNone\b|<[a-z_.]+ |  ")
"""Doubled stops and reprs of values of Python."""


@pytest.mark.parametrize(
    "value",
    ["it is closed.", "Did you mean orders?", 1, None, StreamId(5, 9), StreamName("orders", 0, 9)],
    ids=str,
)
def test_every_condition_reads_well_whatever_its_fields_are(value: object) -> None:
    for leaf in leaves():
        error = leaf(**dict.fromkeys(fields_of(leaf), value))
        assert not _ODD.findall(f"{error.message}\n{error.hint_text}"), leaf
        ends = (".", "?", "!") if leaf.sentence.endswith((".", "!")) else ("",)
        assert error.message.endswith(ends), leaf


def test_an_unknown_code_keeps_its_text_and_is_not_definite() -> None:
    error = from_wire("DSS9999", {"a": "b"}, "Something new.")
    assert isinstance(error, UnknownCondition)
    assert not error.definite
    assert error.message == "The daemon reported DSS9999: Something new."


def test_a_field_that_an_older_peer_did_not_send_shows_as_a_question_mark() -> None:
    assert "?" in from_wire(TopicNotFound.code, {}, "").message


def test_fields_of_any_name_and_content_are_harmless() -> None:
    fields = {"self": "x", "topic": "{topic} {0} {a.b}", "no identifier": "y"}
    assert "{topic} {0} {a.b}" in from_wire(TopicNotFound.code, fields, "").message

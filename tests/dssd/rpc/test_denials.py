"""What a caller is told that lacks a role. That of topics and groups: `test_demands`."""

import shlex

import pytest

from dss_api.v1 import log_pb2, sessions_pb2
from dss_core.errors import IllegalFilter
from dssd.access.permissions import Principal, Role, permission_of
from dssd.rpc.denials import ATTACH, NOTHING_KNOWN, role_denial

READER = Principal.of("token:ada", [permission_of("read", ["orders/#"], ["*"])])
PRODUCE = "/dss_api.v1.Log/Produce"


def opening(*filters: str) -> sessions_pb2.SessionUp:
    return sessions_pb2.SessionUp(open=sessions_pb2.Open(filters=filters))


def test_who_opens_a_session_is_told_what_would_let_it_subscribe() -> None:
    message = opening("$share/billing/orders/#", "payments/#")
    told = role_denial(ATTACH, Role.CONSUME, message, READER, NOTHING_KNOWN)
    assert str(told) == "token:ada may not consume orders/# in the group billing."
    assert "--role consume --topic 'orders/#' --group billing" in told.hint_text


def test_filters_that_are_none_are_refused_as_such() -> None:
    with pytest.raises(IllegalFilter):
        role_denial(ATTACH, Role.CONSUME, opening("a/#/b"), READER, NOTHING_KNOWN)


@pytest.mark.parametrize("message", [None, log_pb2.ProduceRequest()])
def test_where_a_call_names_nothing_the_names_are_left_open(message: object) -> None:
    told = role_denial(PRODUCE, Role.PRODUCE, message, READER, NOTHING_KNOWN)
    assert str(told) == f"token:ada may not call {PRODUCE}."
    assert "allow token:ada --role produce --topic FILTER" in told.hint_text


@pytest.mark.parametrize("role", Role)
def test_what_is_left_open_is_a_permission_once_it_is_filled_in(role: Role) -> None:
    told = role_denial("/x", role, None, READER, NOTHING_KNOWN)
    words = shlex.split(told.hint_text.rstrip(".").partition("token:ada ")[2])
    said = dict(zip(words[::2], words[1::2], strict=True))
    topics = ["orders/#"] if said.get("--topic") == "FILTER" else []
    groups = ["billing"] if said.get("--group") == "NAME" else []
    assert permission_of(said["--role"], topics, groups).role is role

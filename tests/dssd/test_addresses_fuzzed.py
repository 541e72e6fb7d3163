"""Texts of listeners and permissions, whatever somebody writes: refused, or as they are written."""

import ipaddress

from hypothesis import given, settings
from hypothesis import strategies as st

from dss_core.errors import DssError
from dssd.access.permissions import Demand, Role, permission_of
from dssd.addresses import Clients, TcpAddress, parse_address
from support.proof_share import share

EXAMPLES = share(200, 60_000)
PIECES = st.sampled_from(
    [
        *("127.0.0.1", "0.0.0.0", "[::1]", "[::]", "localhost", "a.example", "7233", "0", "99999"),
        *("tls", "clients=", "tokens", "certs", "anybody", "names=", "cn", "uri", "unix:"),
        *(":", ",", "/", "=", " ", "\0", "\u0661"),
    ]
)
TEXTS = st.lists(PIECES, max_size=9).map("".join) | st.text(max_size=40)


@settings(max_examples=EXAMPLES)
@given(TEXTS)
def test_a_listener_beyond_loopback_has_tls_and_says_who_is_served(text: str) -> None:
    try:
        address = parse_address(text)
    except DssError:
        return
    if not isinstance(address, TcpAddress):
        return
    is_loopback = address.host == "localhost" or ipaddress.ip_address(address.host).is_loopback
    assert is_loopback or (address.policy.tls and address.policy.clients is not Clients.ANYBODY)
    assert address.policy.clients is not Clients.CERTS or address.policy.tls


NAMES = st.text(st.sampled_from("ab/+#*%u$\0 "), max_size=6)


@settings(max_examples=EXAMPLES)
@given(
    st.sampled_from([*Role, "root", ""]), st.lists(NAMES, max_size=3), st.lists(NAMES, max_size=2)
)
def test_a_permission_is_refused_or_allows_no_other_role(
    role: str, topics: list[str], groups: list[str]
) -> None:
    try:
        made = permission_of(role, topics, groups)
    except DssError:
        return
    for other in Role:
        if other not in (made.role, Role.READ):
            assert not made.allows(Demand(other))

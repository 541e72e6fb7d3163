"""Authenticates the callers of a listener, by its policy and nothing else.

Invariant: a call proceeds only after a login, and the text of a token is never stored, sent or
logged.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import grpc.aio

from dss_core.errors import LoginRefused
from dssd.access.access import Access, Login
from dssd.addresses import CertificateName, Clients, Policy
from dssd.rpc.certificate_times import NoCertificateError, not_after_ms
from dssd.rpc.principal import by_transport

Context = grpc.aio.ServicerContext[Any, Any]

AUTHORIZATION = "authorization"
BEARER = "Bearer "

CERTIFICATES_READ_MAX = 1_024
"""Client certificates whose expiry is cached, the newest: 2 KiB each."""

_PEM = "x509_pem_cert"
_PROPERTIES = {CertificateName.CN: "x509_common_name", CertificateName.URI: "peer_uri"}
"""Where gRPC tells the names of a certificate."""


class Logins(Protocol):
    """Finds out who calls."""

    def login(self, context: Context) -> Login:
        """The login of a call.

        Raises:
            LoginRefused: nobody knows who calls.
        """


class ByTransport:
    """Any caller that reaches the address."""

    def login(self, context: Context) -> Login:
        """The login of a call."""
        return Login(by_transport(context))


class ByToken:
    """Callers with a token, which comes with each call."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def login(self, context: Context) -> Login:
        """The login of a call.

        Raises:
            LoginRefused: it has no token, or one that is not known.
        """
        token = _token_of(context)
        if token is None:
            raise LoginRefused(reason="it sent no token; give a file with one: --token-file FILE")
        login = self._access.by_token(token.encode(errors="replace"))
        if login is None:
            _refuse_suspended(self._access.suspended_by(token.encode(errors="replace")))
            raise LoginRefused(reason="no principal has its token, or no longer")
        return login


class ByCertificate:
    """Callers with a certificate of a known authority whose name is a principal."""

    def __init__(self, access: Access, names: CertificateName) -> None:
        self._access = access
        self._names = names
        self._ends: dict[bytes, int] = {}

    def login(self, context: Context) -> Login:
        """The login of a call.

        Raises:
            LoginRefused: its certificate has not exactly one name, or its name is not known.
        """
        said: Mapping[str, Sequence[bytes]] = context.auth_context()  # type: ignore[assignment] # lists, whatever the stubs say
        names = said.get(_PROPERTIES[self._names], ())
        if len(names) != 1:
            what = f"{self._names.upper()} in its certificate"
            raise LoginRefused(reason=f"there are {len(names)} {what}, where one says who it is")
        name = names[0].decode(errors="replace")
        not_after = self._end_of(said.get(_PEM, (b"",))[0])
        login = self._access.by_certificate(name, not_after)
        if login is not None:
            return login
        _refuse_suspended(self._access.suspended_at(name))
        if not_after <= time.time() * 1_000:
            raise LoginRefused(reason=f"the certificate of {name!r} has expired")
        add = f"dssctl principals add {name!r}"
        raise LoginRefused(reason=f"nobody is known as cert:{name}, or no longer; see: {add}")

    def _end_of(self, pem: bytes) -> int:
        known = self._ends.get(pem)
        if known is not None:
            return known
        try:
            end_ms = not_after_ms(pem)
        except NoCertificateError as error:
            raise LoginRefused(reason=str(error)) from error
        if len(self._ends) >= CERTIFICATES_READ_MAX:
            del self._ends[next(iter(self._ends))]
        self._ends[pem] = end_ms
        return end_ms


def _refuse_suspended(name: str) -> None:
    """Refuse a principal that a restore suspended, until an administrator confirms it.

    Raises:
        LoginRefused: the name is not empty.
    """
    if name:
        confirm = f"an administrator confirms with: dssctl principals confirm {name}"
        raise LoginRefused(reason=f"{name} is suspended since a backup was restored; {confirm}")


def logins_of(policy: Policy, access: Access) -> Logins:
    """The logins for the policy of a listener."""
    match policy.clients:
        case Clients.ANYBODY:
            return ByTransport()
        case Clients.TOKENS:
            return ByToken(access)
        case Clients.CERTS:
            return ByCertificate(access, policy.names)


def _token_of(context: Context) -> str | None:
    for name, value in context.invocation_metadata() or ():
        if name == AUTHORIZATION and isinstance(value, str) and value.startswith(BEARER):
            return value.removeprefix(BEARER)
    return None

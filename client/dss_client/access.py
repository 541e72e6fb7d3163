"""Who may call a daemon from elsewhere, and what: tokens, certificates, their permissions.

Invariant: a token is drawn here, returned once, and goes nowhere: the daemon is sent its SHA-256.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dss_api.values import decoded
from dss_client._credentials import TOKEN_PREFIX

if TYPE_CHECKING:
    from dss_api.v1 import access_pb2
    from dss_client._connection import Connection

"""So that who finds one in a file knows what it is."""
TOKEN_BYTES = 32
TOKEN_KIND = "token:"


@dataclass(frozen=True, slots=True)
class Permission:
    """A role, for some subjects and groups."""

    role: str
    """``read``, ``produce``, ``consume``, ``operate`` or ``admin``."""
    topics: tuple[str, ...] = ()
    """Filters of subjects; ``#`` for all."""
    groups: tuple[str, ...] = ()
    """Names of groups, in which ``*`` stands for any characters."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who may call from elsewhere."""

    name: str
    """``token:NAME`` or ``cert:NAME``."""
    permissions: tuple[Permission, ...]
    expires_at_ms: int | None
    older_token_until_ms: int | None
    """The token before this one is taken until then."""
    created_at_ms: int
    created_by: str
    suspended: bool = False
    """A restore from a backup suspended it: it is refused until confirmed."""


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just made. It is shown here, and never again."""

    principal: Principal
    token: str = field(repr=False)


class Access:
    """The principals of a daemon; reached as ``client.access``. All of it is for administrators."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    async def list(self) -> tuple[Principal, ...]:
        """Everybody, by name."""
        from dss_api.v1 import access_pb2

        found: list[Principal] = []
        while True:
            after = found[-1].name if found else ""
            request = access_pb2.ListPrincipalsRequest(after_name=after)
            reply = await self._connection.ask(self._connection.access.List, request)
            found += (decoded(each, Principal) for each in reply.principals)
            if not reply.more:
                return tuple(found)

    async def add_token(
        self, name: str, permissions: Sequence[Permission], *, expires_at_ms: int | None = None
    ) -> NewToken:
        """Make a token for somebody new.

        Raises:
            PrincipalExists: there is somebody of that name.
            IllegalName, IllegalArgument, IllegalFilter: an argument breaks its rule.
            OutcomeUnknown: perhaps it was added; remove it, and add it again.
        """
        token = _drawn()
        request = _put(TOKEN_KIND + name, permissions, expires_at_ms)
        request.token_sha256 = _sha256(token)
        reply = await self._connection.change(self._connection.access.Put, request)
        return NewToken(decoded(reply, Principal), token)

    async def add_certificate(
        self,
        name: str,
        permissions: Sequence[Permission],
        *,
        expires_at_ms: int | None = None,
    ) -> Principal:
        """Admit the holder of a certificate of that name.

        Raises:
            PrincipalExists: there is somebody of that name.
            IllegalArgument, IllegalFilter: an argument breaks its rule.
        """
        request = _put(f"cert:{name}", permissions, expires_at_ms)
        reply = await self._connection.change(self._connection.access.Put, request)
        return decoded(reply, Principal)

    async def edit(
        self, name: str, permissions: Sequence[Permission], *, expires_at_ms: int | None = None
    ) -> Principal:
        """Replace the permissions and the expiry of a principal; its running calls end, and clients
        reconnect.

        Args:
            name: with its kind, ``token:NAME`` or ``cert:NAME``.
            permissions: all that they have from then on.
            expires_at_ms: when they end; never where absent.

        Raises:
            PrincipalNotFound: there is nobody of that name.
            IllegalArgument, IllegalFilter: an argument breaks its rule.
        """
        request = _put(name, permissions, expires_at_ms)
        request.replace = True
        reply = await self._connection.change(self._connection.access.Put, request)
        return decoded(reply, Principal)

    async def allow(self, name: str, permissions: Sequence[Permission]) -> Principal:
        """Give a principal more permissions; it keeps those that it has. Its running calls end, and
        clients reconnect.

        Args:
            name: with its kind, ``token:NAME`` or ``cert:NAME``.

        Raises:
            PrincipalNotFound: there is nobody of that name.
            IllegalArgument, IllegalFilter: an argument breaks its rule.
        """
        request = _put(name, permissions, None)
        request.add = True
        reply = await self._connection.change(self._connection.access.Put, request)
        return decoded(reply, Principal)

    async def rotate_token(self, name: str, *, both_for_ms: int = 0) -> NewToken:
        """Make a new token for a principal; the previous one is accepted for so long, too.

        Raises:
            PrincipalNotFound: nobody of that name has a token.
            IllegalArgument: it would be too long.
        """
        from dss_api.v1 import access_pb2

        token = _drawn()
        request = access_pb2.RotateTokenRequest(
            name=TOKEN_KIND + name, token_sha256=_sha256(token), both_for_ms=both_for_ms
        )
        reply = await self._connection.change(self._connection.access.Rotate, request)
        return NewToken(decoded(reply, Principal), token)

    async def confirm(self, names: Sequence[str] = ()) -> tuple[Principal, ...]:
        """Confirm principals that a restore from a backup suspended; returns them.

        Args:
            names: with their kinds; all that are suspended where none is given.

        Raises:
            PrincipalNotFound: there is nobody of a name; nothing was changed.
        """
        from dss_api.v1 import access_pb2

        request = access_pb2.ConfirmPrincipalsRequest(names=names)
        reply = await self._connection.change(self._connection.access.Confirm, request)
        return tuple(decoded(each, Principal) for each in reply.principals)

    async def remove(self, name: str, *, if_exists: bool = False) -> bool:
        """Remove a principal; returns whether there was one.

        Args:
            name: with its kind, ``token:NAME`` or ``cert:NAME``.
            if_exists: it is no error where there is none.

        Raises:
            PrincipalNotFound: there is nobody of that name.
        """
        from dss_api.v1 import access_pb2

        request = access_pb2.RemovePrincipalRequest(name=name, if_exists=if_exists)
        reply = await self._connection.change(self._connection.access.Remove, request)
        return reply.removed


def _put(
    name: str, permissions: Sequence[Permission], expires_at_ms: int | None
) -> "access_pb2.PutPrincipalRequest":
    from dss_api.v1 import access_pb2

    said = [
        access_pb2.Permission(role=each.role, topics=each.topics, groups=each.groups)
        for each in permissions
    ]
    return access_pb2.PutPrincipalRequest(name=name, permissions=said, expires_at_ms=expires_at_ms)


def _drawn() -> str:
    return TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)


def _sha256(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()

"""Authentication: the principals that log in with a token or a certificate.

Invariant: memory equals the committed rows, and holds only the SHA-256 of a token. A login is valid
until its principal is removed or expires, or its permissions or token change; a caller that keeps a
login checks `still_holds`.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Collection
from dataclasses import dataclass, replace

from dss_core.errors import (
    IllegalArgument,
    PrincipalExists,
    PrincipalNotFound,
    TooManyPrincipals,
)
from dss_core.filters import check_name
from dssd.access.permissions import (
    ALL_ROLES,
    PERMISSIONS_MAX,
    Permission,
    Principal,
    confirmed,
    is_suspended,
    read_stored,
    stored,
    suspended,
)
from dssd.clock import Clock
from dssd.store.access_rows import PrincipalRow
from dssd.store.paging import scan_all
from dssd.store.port import Absent, Delete, Put, Store, Versioned, VersionIs

PRINCIPALS_MAX = 10_000
"""Some hundred bytes each in memory; each start reads all."""

SECRET_BYTES = hashlib.sha256().digest_size

CERTIFICATE_NAME_BYTES_MAX = 255

BOTH_FOR_MS_MAX = 30 * 86_400_000
"""How long an old token may stay valid beside its successor."""

TOKEN_KIND, CERTIFICATE_KIND, LOCAL_KIND = "token:", "cert:", "local:"
LOOPBACK = "loopback"
"""Whoever is on this machine."""


@dataclass(frozen=True, slots=True)
class Login:
    """An authenticated caller, and the end of its login."""

    principal: Principal
    key: str | bytes = ""
    """The credential: the SHA-256 of a token, or the name of a certificate; empty: neither."""
    ends_at_ms: int | None = None
    """By the wall clock."""


@dataclass(frozen=True, slots=True)
class NewPrincipal:
    """What an administrator says of a principal."""

    name: str
    permissions: tuple[Permission, ...]
    secret: bytes
    """SHA-256 of the token; empty for a certificate."""
    expires_at_ms: int | None
    by: str
    """Who adds it."""
    replaces: bool = False
    """Replace a principal of that name; it keeps its token if none is given."""
    adds: bool = False
    """Add these permissions to those of a principal of that name, and change nothing else."""


class Access:
    """All principals of a daemon. Built by `open`."""

    def __init__(self, store: Store, clock: Clock, found: list[Versioned[PrincipalRow]]) -> None:
        self._store = store
        self._clock = clock
        self._rows = {each.row.name: each for each in found}
        self._logins: dict[str | bytes, Login] = {}
        self._suspended: dict[str | bytes, str] = {}
        """Suspended principals by their credential: refused until confirmed."""
        self._turn = asyncio.Lock()
        for each in found:
            self._enter(each.row)

    @classmethod
    async def open(cls, store: Store, clock: Clock) -> "Access":
        """Read who is known."""
        return cls(store, clock, await scan_all(store, PrincipalRow))

    def rows(self) -> list[PrincipalRow]:
        """All of them, by name."""
        return [self._rows[name].row for name in sorted(self._rows)]

    @property
    def suspended(self) -> int:
        """How many principals are suspended."""
        return len(set(self._suspended.values()))

    def suspended_by(self, token: bytes) -> str:
        """The suspended principal with this token; empty: none."""
        return self._suspended.get(hashlib.sha256(token).digest(), "")

    def suspended_at(self, certificate: str) -> str:
        """The suspended principal with a certificate of that name; empty: none."""
        return self._suspended.get(CERTIFICATE_KIND + certificate, "")

    def by_token(self, token: bytes) -> Login | None:
        """The login of the principal with this token; None if there is none, or the token has
        expired."""
        secret = hashlib.sha256(token).digest()
        login = self._logins.get(secret)
        # Callers cannot choose the hash that is looked up; the result is compared in constant time.
        if login is None or not hmac.compare_digest(_bytes(login.key), secret):
            return None
        return login if self.still_holds(login) else None

    def by_certificate(self, name: str, not_after_ms: int) -> Login | None:
        """The login of the principal with a certificate of that name; None if there is none."""
        login = self._logins.get(CERTIFICATE_KIND + name)
        if login is None:
            return None
        ends = [each for each in (login.ends_at_ms, not_after_ms) if each is not None]
        own = replace(login, ends_at_ms=min(ends))
        return own if self.still_holds(own) else None

    def present(self, name: str) -> Principal | None:
        """The principal of that name with its present permissions; None: unknown or expired.

        Local callers have no row: the socket identifies them.
        """
        if name == LOOPBACK or name.startswith(LOCAL_KIND):
            return Principal(name, ALL_ROLES)
        known = self._rows.get(name)
        login = None if known is None else self._logins.get(known.row.secret or name)
        return login.principal if login is not None and self.still_holds(login) else None

    def still_holds(self, login: Login) -> bool:
        """Whether the same credential would give the same login now."""
        if not login.key:
            return True
        now_ms = self._clock.wall_ms()
        current = self._logins.get(login.key)
        return (
            current is not None
            and current.principal == login.principal
            and all(
                each.ends_at_ms is None or now_ms < each.ends_at_ms for each in (current, login)
            )
        )

    async def put(self, asked: NewPrincipal) -> PrincipalRow:
        """Add a principal, or give one that is there other permissions.

        Raises:
            IllegalArgument, IllegalName: it is not as it has to be; nothing was changed.
            PrincipalExists: there is one of that name.
            PrincipalNotFound: there is none to be replaced, and no token was given; or none that
                permissions can be added to.
            TooManyPrincipals: there are as many as may be.
        """
        _check(asked)
        if asked.expires_at_ms is not None and asked.expires_at_ms <= self._clock.wall_ms():
            raise IllegalArgument(argument="expires_at_ms", rule="it is after now")
        async with self._turn:
            known = self._rows.get(asked.name)
            if asked.adds:
                return await self._keep(_with_more(asked, known), known)
            if known is not None and not asked.replaces:
                raise PrincipalExists(name=asked.name)
            if known is None and len(self._rows) >= PRINCIPALS_MAX:
                raise TooManyPrincipals(limit=PRINCIPALS_MAX)
            if known is None and asked.name.startswith(TOKEN_KIND) and not asked.secret:
                raise PrincipalNotFound(name=asked.name)
            return await self._keep(self._row(asked, known), known)

    async def rotate(self, name: str, secret: bytes, both_for_ms: int) -> PrincipalRow:
        """Give a principal a new token; the old one stays valid for so long.

        Raises:
            IllegalArgument: a value is out of its bounds; nothing was changed.
            PrincipalNotFound: there is none of that name with a token.
        """
        _check_secret(secret)
        if not 0 <= both_for_ms <= BOTH_FOR_MS_MAX:
            rule = f"0 to {BOTH_FOR_MS_MAX} milliseconds"
            raise IllegalArgument(argument="both_for_ms", rule=rule)
        async with self._turn:
            known = self._rows.get(name)
            if known is None or not known.row.secret:
                raise PrincipalNotFound(name=name)
            row = replace(
                known.row,
                permissions=confirmed(known.row.permissions),
                secret=secret,
                older_secret=known.row.secret if both_for_ms else b"",
                older_until_ms=self._clock.wall_ms() + both_for_ms if both_for_ms else 0,
            )
            return await self._keep(row, known)

    async def confirm(self, names: Collection[str]) -> list[PrincipalRow]:
        """Admit principals again that a restore suspended; all of them if none is named.

        Raises:
            PrincipalNotFound: there is none of a name; nothing was changed.
        """
        async with self._turn:
            for name in names:
                if name not in self._rows:
                    raise PrincipalNotFound(name=name)
            waiting = [
                known
                for name, known in self._rows.items()
                if is_suspended(known.row.permissions) and (not names or name in names)
            ]
            return [
                await self._keep(
                    replace(known.row, permissions=confirmed(known.row.permissions)), known
                )
                for known in waiting
            ]

    async def remove(self, name: str) -> None:
        """Remove a principal.

        Raises:
            PrincipalNotFound: there is none of that name.
        """
        async with self._turn:
            known = self._rows.get(name)
            if known is None:
                raise PrincipalNotFound(name=name)
            held = VersionIs(PrincipalRow, (name,), known.version)
            await self._store.commit([Delete(PrincipalRow, (name,))], [held])
            del self._rows[name]
            self._leave(known.row)

    def _row(self, asked: NewPrincipal, known: Versioned[PrincipalRow] | None) -> PrincipalRow:
        permissions = stored(asked.permissions)
        if known is not None and not asked.secret:
            ends = asked.expires_at_ms
            return replace(known.row, permissions=permissions, expires_at_ms=ends)
        return PrincipalRow(
            name=asked.name,
            permissions=permissions,
            secret=asked.secret,
            older_secret=b"",
            older_until_ms=0,
            expires_at_ms=asked.expires_at_ms,
            created_at_ms=self._clock.wall_ms(),
            created_by=asked.by,
        )

    async def _keep(self, row: PrincipalRow, known: Versioned[PrincipalRow] | None) -> PrincipalRow:
        (version,) = await self._store.commit([Put(row)], [_as_known(row.name, known)])
        if known is not None:
            self._leave(known.row)
        self._rows[row.name] = Versioned(row, version)
        self._enter(row)
        return row

    def _enter(self, row: PrincipalRow) -> None:
        if is_suspended(row.permissions):
            keys = (row.secret, row.older_secret) if row.secret else (row.name,)
            self._suspended.update((key, row.name) for key in keys if key)
            return
        principal = Principal.of(row.name, read_stored(row.permissions))
        ends = row.expires_at_ms
        if not row.secret:
            self._logins[row.name] = Login(principal, row.name, ends)
            return
        self._logins[row.secret] = Login(principal, row.secret, ends)
        if row.older_secret:
            older = row.older_until_ms if ends is None else min(ends, row.older_until_ms)
            self._logins[row.older_secret] = Login(principal, row.older_secret, older)

    def _leave(self, row: PrincipalRow) -> None:
        for key in (row.name, row.secret, row.older_secret):
            self._logins.pop(key, None)
            self._suspended.pop(key, None)


def _with_more(asked: NewPrincipal, known: Versioned[PrincipalRow] | None) -> PrincipalRow:
    """The row with more permissions; one that is suspended stays so."""
    if known is None:
        raise PrincipalNotFound(name=asked.name)
    text = known.row.permissions
    permissions = tuple(dict.fromkeys((*read_stored(text), *asked.permissions)))
    _check_number(permissions, least=1)
    added = stored(permissions)
    return replace(known.row, permissions=suspended(added) if is_suspended(text) else added)


def _as_known(name: str, known: Versioned[PrincipalRow] | None) -> Absent | VersionIs:
    if known is None:
        return Absent(PrincipalRow, (name,))
    return VersionIs(PrincipalRow, (name,), known.version)


def _bytes(key: str | bytes) -> bytes:
    return key if isinstance(key, bytes) else b""


def _check(asked: NewPrincipal) -> None:
    kind = next(
        (each for each in (TOKEN_KIND, CERTIFICATE_KIND) if asked.name.startswith(each)), ""
    )
    own = asked.name.removeprefix(kind)
    if kind == TOKEN_KIND:
        check_name(own)
        if asked.secret or not (asked.replaces or asked.adds):
            _check_secret(asked.secret)
    elif kind != CERTIFICATE_KIND or not own or not own.isprintable():
        rule = "write token:NAME, or cert:NAME with the name that its certificate has"
        raise IllegalArgument(argument=f"name {asked.name!r}", rule=rule)
    elif asked.secret:
        raise IllegalArgument(argument="token_sha256", rule="a certificate has no token")
    if asked.adds and (asked.secret or asked.replaces or asked.expires_at_ms is not None):
        raise IllegalArgument(argument="add", rule="it changes nothing but permissions")
    if len(own.encode()) > CERTIFICATE_NAME_BYTES_MAX:
        rule = f"at most {CERTIFICATE_NAME_BYTES_MAX} bytes"
        raise IllegalArgument(argument="name", rule=rule)
    # An existing principal may be denied everything.
    _check_number(asked.permissions, least=0 if asked.replaces else 1)


def _check_number(permissions: tuple[Permission, ...], least: int) -> None:
    if not least <= len(permissions) <= PERMISSIONS_MAX:
        raise IllegalArgument(argument="permissions", rule=f"{least} to {PERMISSIONS_MAX}")


def _check_secret(secret: bytes) -> None:
    if len(secret) != SECRET_BYTES:
        rule = f"the SHA-256 of a token, {SECRET_BYTES} bytes"
        raise IllegalArgument(argument="token_sha256", rule=rule)

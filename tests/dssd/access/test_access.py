"""Who is known, over restarts, and until when."""

import hashlib
from dataclasses import replace

import pytest

from dss_core.errors import (
    IllegalArgument,
    IllegalName,
    PrincipalExists,
    PrincipalNotFound,
    TooManyPrincipals,
)
from dssd.access import access as module
from dssd.access.access import Access, NewPrincipal
from dssd.access.permissions import Role, permission_of, read_stored, suspended
from dssd.store.access_rows import PrincipalRow
from dssd.store.memory import MemoryStore
from dssd.store.paging import scan_all
from dssd.store.port import Put
from support.told_events import SetClock

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
TOKEN, OTHER = b"dss_one", b"dss_two"
READS = (permission_of("read", ["orders/#"], []),)
CONSUMES = (permission_of("consume", ["orders/#"], ["billing"]),)


def sha256(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def token(name: str = "ada", text: bytes = TOKEN, expires_at_ms: int | None = None) -> NewPrincipal:
    return NewPrincipal(f"token:{name}", READS, sha256(text), expires_at_ms, "local:root")


@pytest.fixture
def clock() -> SetClock:
    return SetClock(NOW_MS)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
async def access(store: MemoryStore, clock: SetClock) -> Access:
    return await Access.open(store, clock)


async def test_a_token_lets_in_who_has_it_also_after_a_restart(
    access: Access, store: MemoryStore, clock: SetClock
) -> None:
    await access.put(token())
    for known in (access, await Access.open(store, clock)):
        login = known.by_token(TOKEN)
        assert login is not None
        assert login.principal.name == "token:ada"
        assert known.still_holds(login)
        assert known.by_token(OTHER) is None
        assert known.by_token(b"") is None
        assert known.by_token(sha256(TOKEN)) is None, "the hash is no token"


async def test_nothing_that_lets_anybody_in_is_stored(access: Access, store: MemoryStore) -> None:
    await access.put(token())
    (found,) = await store.scan(PrincipalRow)
    assert TOKEN not in repr(found.row).encode()


async def test_who_is_removed_is_let_in_no_more_and_has_no_login(access: Access) -> None:
    await access.put(token())
    login = access.by_token(TOKEN)
    assert login is not None
    await access.remove("token:ada")
    assert access.by_token(TOKEN) is None
    assert not access.still_holds(login)
    with pytest.raises(PrincipalNotFound):
        await access.remove("token:ada")


async def test_one_that_is_added_anew_under_a_name_has_nothing_of_the_one_before(
    access: Access,
) -> None:
    await access.put(token())
    login = access.by_token(TOKEN)
    await access.remove("token:ada")
    await access.put(token(text=OTHER))
    assert login is not None
    assert not access.still_holds(login)
    assert access.by_token(TOKEN) is None


async def test_other_permissions_end_logins_and_the_token_stays(access: Access) -> None:
    await access.put(token())
    login = access.by_token(TOKEN)
    assert login is not None
    same = replace(token(), secret=b"", replaces=True)
    await access.put(same)
    assert access.still_holds(login)
    await access.put(replace(same, permissions=CONSUMES))
    assert not access.still_holds(login)
    again = access.by_token(TOKEN)
    assert again is not None
    assert again.principal.permissions == CONSUMES


async def test_a_login_ends_when_its_principal_expires(access: Access, clock: SetClock) -> None:
    await access.put(token(expires_at_ms=NOW_MS + HOUR_MS))
    login = access.by_token(TOKEN)
    assert login is not None
    clock.at_ms += HOUR_MS - 1
    assert access.still_holds(login)
    clock.at_ms += 1
    assert not access.still_holds(login)
    assert access.by_token(TOKEN) is None


async def test_what_would_expire_at_once_is_not_added(access: Access) -> None:
    with pytest.raises(IllegalArgument, match="expires"):
        await access.put(token(expires_at_ms=NOW_MS))


async def test_both_tokens_are_taken_for_a_while_after_a_rotation(
    access: Access, store: MemoryStore, clock: SetClock
) -> None:
    await access.put(token())
    login = access.by_token(TOKEN)
    assert login is not None
    await access.rotate("token:ada", sha256(OTHER), HOUR_MS)
    for known in (access, await Access.open(store, clock)):
        assert known.by_token(TOKEN) is not None
        assert known.by_token(OTHER) is not None
        assert known.still_holds(login)
    clock.at_ms += HOUR_MS
    assert access.by_token(TOKEN) is None
    assert not access.still_holds(login)
    assert access.by_token(OTHER) is not None


async def test_an_edit_within_a_rotation_leaves_both_tokens(access: Access) -> None:
    await access.put(token())
    await access.rotate("token:ada", sha256(OTHER), HOUR_MS)
    await access.put(replace(token(), secret=b"", permissions=CONSUMES, replaces=True))
    assert access.by_token(TOKEN) is not None
    assert access.by_token(OTHER) is not None


async def test_a_rotation_at_once_ends_the_older_token(access: Access) -> None:
    await access.put(token())
    login = access.by_token(TOKEN)
    assert login is not None
    await access.rotate("token:ada", sha256(OTHER), 0)
    assert access.by_token(TOKEN) is None
    assert not access.still_holds(login)


async def test_a_certificate_lets_in_by_its_name_until_it_ends(
    access: Access, clock: SetClock
) -> None:
    await access.put(NewPrincipal("cert:w.example", READS, b"", None, "local:root"))
    assert access.by_certificate("other", NOW_MS + 1) is None
    assert access.by_certificate("w.example", NOW_MS) is None
    login = access.by_certificate("w.example", NOW_MS + 1)
    assert login is not None
    clock.at_ms += 1
    assert not access.still_holds(login)


async def test_a_token_is_no_certificate_of_its_name(access: Access) -> None:
    await access.put(token("w"))
    assert access.by_certificate("w", NOW_MS + 1) is None
    assert access.by_token(b"token:w") is None


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("ada", sha256(TOKEN)),
        ("local:root", sha256(TOKEN)),
        ("token:ada", b""),
        ("token:ada", TOKEN),
        ("cert:w", sha256(TOKEN)),
        ("cert:", b""),
        ("cert:a\nb", b""),
        ("cert:" + "x" * 256, b""),
    ],
)
async def test_what_is_no_principal_is_refused(access: Access, name: str, secret: bytes) -> None:
    with pytest.raises(IllegalArgument):
        await access.put(NewPrincipal(name, READS, secret, None, "local:root"))
    assert access.rows() == []


async def test_a_name_of_a_token_is_a_name(access: Access) -> None:
    with pytest.raises(IllegalName):
        await access.put(token("a b"))


async def test_who_is_there_is_replaced_only_where_that_is_said(access: Access) -> None:
    await access.put(token())
    with pytest.raises(PrincipalExists):
        await access.put(token(text=OTHER))
    with pytest.raises(PrincipalNotFound):
        await access.put(replace(token("bob"), secret=b"", replaces=True))
    with pytest.raises(PrincipalNotFound):
        await access.rotate("token:bob", sha256(OTHER), 0)


async def test_there_are_not_more_than_there_may_be(
    access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PRINCIPALS_MAX", 1)
    await access.put(token())
    with pytest.raises(TooManyPrincipals):
        await access.put(token("bob", OTHER))
    await access.put(replace(token(), secret=b"", replaces=True))


async def suspended_ones(store: MemoryStore, clock: SetClock) -> Access:
    """Those of the store, as a restore leaves them."""
    rows = [found.row for found in await scan_all(store, PrincipalRow)]
    held = [replace(row, permissions=suspended(row.permissions)) for row in rows]
    await store.commit([Put(row) for row in held])
    return await Access.open(store, clock)


async def test_who_is_suspended_is_not_let_in_until_confirmed_and_keeps_all(
    access: Access, store: MemoryStore, clock: SetClock
) -> None:
    before = await access.put(token(expires_at_ms=NOW_MS + HOUR_MS))
    await access.put(NewPrincipal("cert:worker", READS, b"", None, "local:root"))
    restored = await suspended_ones(store, clock)
    assert restored.suspended == 2
    assert restored.by_token(TOKEN) is None
    assert restored.suspended_by(TOKEN) == "token:ada"
    assert restored.by_certificate("worker", NOW_MS + HOUR_MS) is None
    assert restored.suspended_at("worker") == "cert:worker"
    [confirmed] = await restored.confirm({"token:ada"})
    assert confirmed == before
    assert restored.by_token(TOKEN) is not None
    assert (restored.suspended_by(TOKEN), restored.suspended) == ("", 1)
    assert [row.name for row in await restored.confirm(())] == ["cert:worker"]
    assert await restored.confirm(()) == []
    assert (await Access.open(store, clock)).suspended == 0


async def test_a_confirmation_of_somebody_unknown_lets_nobody_in(
    access: Access, store: MemoryStore, clock: SetClock
) -> None:
    await access.put(token())
    restored = await suspended_ones(store, clock)
    with pytest.raises(PrincipalNotFound):
        await restored.confirm({"token:ada", "token:nobody"})
    assert restored.by_token(TOKEN) is None


async def test_another_token_other_permissions_or_a_removal_end_a_suspension_too(
    access: Access, store: MemoryStore, clock: SetClock
) -> None:
    for name, text in (("ada", TOKEN), ("bob", OTHER), ("eve", b"dss_three")):
        await access.put(token(name, text))
    restored = await suspended_ones(store, clock)
    await restored.rotate("token:ada", sha256(b"dss_new"), 0)
    assert restored.by_token(b"dss_new") is not None
    await restored.put(NewPrincipal("token:bob", CONSUMES, b"", None, "local:root", replaces=True))
    assert restored.by_token(OTHER) is not None
    await restored.remove("token:eve")
    assert (restored.suspended, restored.suspended_by(b"dss_three")) == (0, "")


async def test_more_is_allowed_beside_what_somebody_may_already(access: Access) -> None:
    await access.put(token(expires_at_ms=NOW_MS + HOUR_MS))
    more = replace(token(), secret=b"", permissions=(*CONSUMES, *READS), adds=True)
    row = await access.put(more)
    assert read_stored(row.permissions) == (*READS, *CONSUMES), "and nothing twice"
    assert row.expires_at_ms == NOW_MS + HOUR_MS
    assert access.by_token(TOKEN) is not None
    with pytest.raises(PrincipalNotFound):
        await access.put(replace(more, name="token:bob"))
    for wrong in (
        replace(more, secret=sha256(OTHER)),
        replace(more, expires_at_ms=NOW_MS + 1),
        replace(more, permissions=()),
        replace(more, permissions=tuple(permission_of("read", [f"{n}/#"], []) for n in range(15))),
    ):
        with pytest.raises(IllegalArgument):
            await access.put(wrong)
    assert access.rows() == [row]


async def test_who_is_suspended_stays_so_with_more_permissions(
    access: Access, store: MemoryStore, clock: SetClock
) -> None:
    row = await access.put(token())
    await store.commit([Put(replace(row, permissions=suspended(row.permissions)))])
    restored = await Access.open(store, clock)
    await restored.put(replace(token(), secret=b"", permissions=CONSUMES, adds=True))
    assert restored.by_token(TOKEN) is None
    await restored.confirm(())
    login = restored.by_token(TOKEN)
    assert login is not None
    assert login.principal.roles == {Role.READ, Role.CONSUME}

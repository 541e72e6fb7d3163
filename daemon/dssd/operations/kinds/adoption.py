"""Adoptions: sessions without a connection are given to another principal.

A client that comes under another principal may not use the sessions of its former one. Only the
owner of a session changes: its id, its subscriptions and their progress stay, so the client goes on
where it was. Invariant: a connected session is never adopted, as its present client is responsible
for it; nor is a session that its client opened after the plan was made.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial

from dss_core.changes import AdoptSessions, Change, NamedSession, Undo
from dss_core.counted import counted
from dss_core.errors import (
    IllegalArgument,
    NotUndoable,
    PrincipalNotFound,
    SessionConnected,
    SessionNotFound,
    SessionReplaced,
)
from dssd.operations.kinds.clients_named import named, they
from dssd.operations.kinds.final import Unstoppable
from dssd.operations.plans import Begun, Plan, Worked
from dssd.sessions.adoption import Adoption
from dssd.sessions.sessions import Sessions
from dssd.store.rows import OperationRow, SessionRow

ADOPT = "sessions.adopt"

ADOPTED_MAX = 1_000
"""How many sessions one operation adopts: their ids are in its row, and one commit writes them."""

PATTERNS_MAX = 100
"""How many client ids, or patterns of them, one change may have."""

_ANY = "*"
_SESSIONS = "sessions"
"""In ``before`` of an operation: the adopted sessions and their former owners."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The sessions that a change names, as they are now."""

    adoptions: tuple[Adoption, ...]
    connected: tuple[str, ...]
    """Connected clients that match a pattern; they are left out."""


class SessionAdoptions(Unstoppable):
    """Sessions that get another owner."""

    def __init__(self, sessions: Sessions, is_known: Callable[[str], bool]) -> None:
        self._sessions = sessions
        self._is_known = is_known
        """Whether a principal of that name is known."""

    async def plan(self, change: AdoptSessions) -> Plan:
        """Which sessions change their owner, and who gets them.

        Raises:
            PrincipalNotFound: no principal has the name of the new owner.
            SessionNotFound, SessionConnected, SessionReplaced: of a session that is named.
            IllegalArgument: it names none, or too many.
        """
        if not self._is_known(change.to):
            raise PrincipalNotFound(name=change.to)
        return self._planned(change.to, self._chosen(change))

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The adoption, as work: it waits for clients that connect in this moment."""
        assert isinstance(plan.found, _Chosen)
        return _begun(plan.found.adoptions, self._adopting(plan.found.adoptions))

    async def plan_undo(self, undone: OperationRow) -> Plan:
        """Which sessions go back to their former owners.

        Raises:
            NotUndoable: one is connected, or none is still as the adoption left it.
        """
        back = tuple(self._left_of(undone))
        if not back:
            why = "none of its sessions is left as it was adopted"
            raise NotUndoable(number=undone.number, kind=undone.kind, why=why)
        connected = [each.client_id for each in back if self._row(each.client_id)[1]]
        if connected:
            why = f"{they(connected, 'is', 'are')} connected"
            raise NotUndoable(number=undone.number, kind=undone.kind, why=why)
        return _plan(Undo(undone.number), "give back", _Chosen(back, ()))

    async def begin_undo(self, undone: OperationRow, plan: Plan, number: int) -> Begun:
        """As `begin`."""
        return await self.begin(plan, number)

    async def resumed(self, row: OperationRow) -> Begun:
        """Adopt the rest: a session that was adopted already stays so."""
        adoptions = _adoptions_of(row)
        return Begun(work=self._adopting(adoptions))

    def _adopting(self, adoptions: Sequence[Adoption]) -> Callable[[], Awaitable[Worked]]:
        return partial(self._adopt, adoptions)

    async def _adopt(self, adoptions: Sequence[Adoption]) -> Worked:
        left_out = await self._sessions.adopt(adoptions)
        if not left_out:
            return Worked({})
        done = len(adoptions) - len(left_out)
        why = (
            f"{named(left_out)} came back or went meanwhile, and stayed as before; "
            f"{done:,} of {len(adoptions):,} were adopted"
        )
        return Worked({}, why)

    # Choosing

    def _row(self, client_id: str) -> tuple[SessionRow, bool]:
        return self._sessions.row(client_id)

    def _chosen(self, change: AdoptSessions) -> _Chosen:
        wanted = change.sessions or self._named(change)
        connected: list[str] = []
        adoptions: list[Adoption] = []
        for each in wanted:
            row, is_connected = self._row(each.client_id)
            if row.session_id != each.session_id:
                raise SessionReplaced(client_id=each.client_id)
            if row.principal == change.to:
                continue
            if is_connected and (change.sessions or each.client_id in change.clients):
                raise SessionConnected(client_id=each.client_id)
            if is_connected:
                connected.append(each.client_id)
            else:
                adoptions.append(
                    Adoption(each.client_id, each.session_id, row.principal, change.to)
                )
        if len(adoptions) > ADOPTED_MAX:
            rule = f"at most {ADOPTED_MAX:,} at once: name fewer, and go on from there"
            raise IllegalArgument(argument=f"{len(adoptions):,} sessions", rule=rule)
        return _Chosen(tuple(adoptions), tuple(connected))

    def _named(self, change: AdoptSessions) -> Iterable[NamedSession]:
        """The sessions that a change names, by client id."""
        if not change.clients and not change.of:
            rule = f"name clients, {_ANY} for any characters, or whose they are"
            raise IllegalArgument(argument="an adoption of nothing", rule=rule)
        if len(change.clients) > PATTERNS_MAX:
            rule = f"at most {PATTERNS_MAX}"
            raise IllegalArgument(argument=f"{len(change.clients):,} client ids", rule=rule)
        patterns = [each for each in change.clients if _ANY in each]
        found = {each: self._row(each)[0] for each in change.clients if each not in patterns}
        if patterns or not change.clients:
            for row in self._sessions.rows():
                if not change.clients or any(fnmatchcase(row.client_id, p) for p in patterns):
                    found[row.client_id] = row
        for client_id, row in sorted(found.items()):
            if change.of in ("", row.principal):
                yield NamedSession(client_id, row.session_id)

    def _planned(self, to: str, chosen: _Chosen) -> Plan:
        sessions = tuple(NamedSession(each.client_id, each.session_id) for each in chosen.adoptions)
        return _plan(AdoptSessions(to, sessions=sessions), "adopt", chosen)

    def _left_of(self, undone: OperationRow) -> Iterable[Adoption]:
        for each in _adoptions_of(undone):
            try:
                row, _ = self._row(each.client_id)
            except SessionNotFound:
                continue
            if (row.session_id, row.principal) == (each.session_id, each.to):
                yield each.reversed()


def _plan(change: Change, verb: str, chosen: _Chosen) -> Plan:
    adoptions = chosen.adoptions
    clients = tuple(each.client_id for each in adoptions)
    whose = sorted({each.to for each in adoptions})
    of = f" for {' and '.join(whose)}" if whose else ""
    what = f"the session of {clients[0]}" if len(clients) == 1 else counted(len(clients), "session")
    return Plan(
        change=change,
        kind=ADOPT,
        subject=clients[0] if len(clients) == 1 else _SESSIONS,
        revision=0,
        summary=f"{verb} {what}{of}",
        effects=tuple(_effects(chosen)),
        members=clients,
        nothing_to_do=not clients,
        touches=clients,
        found=chosen,
    )


def _effects(chosen: _Chosen) -> Iterable[str]:
    for before in sorted({each.before for each in chosen.adoptions}):
        own = [each.client_id for each in chosen.adoptions if each.before == before]
        yield (
            f"{named(own)}: {before or 'nobody known'} may not use it any more; its subscriptions "
            "keep their progress, and the new owner has to subscribe again."
        )
    if chosen.connected:
        yield f"{they(chosen.connected, 'is', 'are')} connected, and not adopted."


def _begun(adoptions: Sequence[Adoption], work: Callable[[], Awaitable[Worked]]) -> Begun:
    sessions = {each.client_id: each.session_id.hex() for each in adoptions}
    return Begun(
        work=work,
        before={_SESSIONS: sessions, "of": {each.client_id: each.before for each in adoptions}},
        after={"of": {each.client_id: each.to for each in adoptions}},
    )


def _adoptions_of(row: OperationRow) -> tuple[Adoption, ...]:
    before: Mapping[str, Mapping[str, str]] = json.loads(row.before)
    after: Mapping[str, Mapping[str, str]] = json.loads(row.after)
    return tuple(
        Adoption(
            client_id,
            bytes.fromhex(session_id),
            before["of"][client_id],
            after["of"][client_id],
        )
        for client_id, session_id in before[_SESSIONS].items()
    )

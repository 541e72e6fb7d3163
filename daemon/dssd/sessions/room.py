"""How many sessions there may be, in all and of one principal, and which give way.

If there is no room for a newcomer, sessions without a connection give way, the longest disconnected
first: those of the newcomer's principal if that is at its bound, else those of the principal with
the most sessions. Invariant: every session is counted once, from before its row is written. This
module keeps numbers and names; its callers tell it what a session owns.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterator

from dss_core.errors import TooManySessions
from dssd.sessions.limits import SESSIONS_MAX

SESSIONS_PRINCIPAL_MAX = 16_384
"""How many sessions one principal may have: abandoned ones keep out only their own principal."""


class SessionRoom:
    """The sessions of a daemon by principal, with those that are about to be made."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._count = 0
        self._left: dict[str, OrderedDict[str, int]] = {}
        """By principal: the clients that may give way and when they left, the earliest first."""

    def add(self, principal: str) -> None:
        """There is one more session, or will be."""
        self._counts[principal] += 1
        self._count += 1

    def remove(self, client_id: str, principal: str) -> None:
        """There is one less."""
        self.stays(client_id, principal)
        self._count -= 1
        self._counts[principal] -= 1
        if not self._counts[principal]:
            del self._counts[principal]

    def may_give_way(self, client_id: str, principal: str, left_ms: int) -> None:
        """A session is disconnected since then, and has nothing to lose: it may give way."""
        own = self._left.setdefault(principal, OrderedDict())
        own[client_id] = left_ms
        own.move_to_end(client_id)

    def stays(self, client_id: str, principal: str) -> None:
        """A session has a connection, or something to lose, or is no more."""
        own = self._left.get(principal)
        if own is not None:
            own.pop(client_id, None)
            if not own:
                del self._left[principal]

    def moved(self, client_id: str, before: str, to: str) -> None:
        """A session has another owner; it may give way as it did before."""
        own = self._left.get(before)
        left_ms = None if own is None else own.get(client_id)
        self.remove(client_id, before)
        self.add(to)
        if left_ms is not None:
            self.may_give_way(client_id, to, left_ms)

    def has_room_for(self, principal: str, more: int) -> bool:
        """Whether a principal has room to own so many more sessions."""
        return self._counts[principal] + more <= SESSIONS_PRINCIPAL_MAX

    def refusal(self, principal: str) -> TooManySessions | None:
        """Why a principal may have no more sessions; None: it may."""
        if self._is_full_of(principal):
            whose = f"{principal or 'Somebody unknown'}'s"
            return TooManySessions(whose=whose, limit=SESSIONS_PRINCIPAL_MAX)
        if self._count >= SESSIONS_MAX:
            return TooManySessions(whose="All", limit=SESSIONS_MAX)
        return None

    def giving_way(self, principal: str, before_ms: int) -> Iterator[str]:
        """The clients that make room for a session of a principal: those that left before then."""
        giving = principal
        if not self._is_full_of(principal):
            giving = max(self._left, key=lambda each: self._counts[each], default=principal)
        for client_id, left_ms in list(self._left.get(giving, {}).items()):
            if left_ms > before_ms:
                return
            yield client_id

    def _is_full_of(self, principal: str) -> bool:
        return self._counts[principal] >= SESSIONS_PRINCIPAL_MAX

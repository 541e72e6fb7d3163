"""Synchronous acks: which tokens of a client wait for which acks to be durable.

A token may stand for acks under several grants; it is answered once, when all of them are durable.
If one of the grants ends first, the token is never answered.
"""

from dss_core.progress import Progress, Ranges


class DurableAcks:
    """The tokens of one session that wait."""

    __slots__ = ("_durable", "_parts", "_waiting")

    def __init__(self) -> None:
        self._durable: dict[int, Progress] = {}
        """By grant: the durable progress."""
        self._waiting: dict[int, list[tuple[int, Ranges]]] = {}
        """By grant: tokens and the ranges they wait for."""
        self._parts: dict[int, int] = {}
        """By token: under how many grants it waits."""

    def begin(self, grant: int, durable: Progress) -> None:
        """A new grant with its durable progress."""
        self._durable[grant] = durable

    def wait(self, grant: int, token: int, acked: Ranges) -> list[int]:
        """Let a token wait for ranges of a grant; returns the tokens to answer now."""
        self._parts[token] = self._parts.get(token, 0) + 1
        self._waiting.setdefault(grant, []).append((token, acked))
        return self._answered(grant)

    def awaits(self, grant: int) -> bool:
        """Whether a token waits for acks under the grant."""
        return grant in self._waiting

    def saved(self, grant: int, progress: Progress) -> list[int]:
        """More of a grant is durable; returns the tokens to answer now."""
        known = self._durable.get(grant)
        if known is None:
            return []
        self._durable[grant] = known.merged(progress)
        return self._answered(grant) if grant in self._waiting else []

    def end(self, grant: int) -> bool:
        """The grant is over; returns whether tokens waited for it: they are never answered."""
        self._durable.pop(grant, None)
        waiting = self._waiting.pop(grant, [])
        for token, _ in waiting:
            self._parts.pop(token, None)
        return bool(waiting)

    def _answered(self, grant: int) -> list[int]:
        durable = self._durable[grant]
        answered: list[int] = []
        still: list[tuple[int, Ranges]] = []
        for token, acked in self._waiting.pop(grant):
            if not _covers(durable, acked):
                still.append((token, acked))
                continue
            left = self._parts.pop(token, 0) - 1
            if left > 0:
                self._parts[token] = left
            elif left == 0:
                answered.append(token)
        if still:
            self._waiting[grant] = still
        return answered


def _covers(durable: Progress, acked: Ranges) -> bool:
    if not acked or acked[-1][1] <= durable.floor:
        return True
    return durable.with_acked(acked) == durable

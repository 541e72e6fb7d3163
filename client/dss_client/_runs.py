"""The runs of one subscription: those that go on, and what ended ones left.

A run may be cancelled, or end by an error, while the subscription goes on. Records that it took and
did not hand out are kept for the next run. If records are taken in another way instead, the daemon
sends these again; in a group with queues they come from here, as a refusal would count as a
failure. Records that its handlers had when they were cancelled come again as soon as records are
taken again, in whichever way; they are not refused before that, as the subscription may be left
instead. Invariant: a record that is kept for the next run was not handed out by a run.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from dss_client._failure import Failure
from dss_client._ordered import order_of
from dss_client.record import grant_behind

if TYPE_CHECKING:
    from dss_client._grant import HeldGrant
    from dss_client._handout import Handout
    from dss_client._keyed_runner import Chains, KeyedRunner
    from dss_client.record import DeliveredRecord


_CANCELLED = Failure("its handler was cancelled", "CancelledError")


class Runs:
    """Owned by the subscription."""

    def __init__(self) -> None:
        self._runners: list[KeyedRunner] = []
        self._chains: Chains = {}
        """Refused records that ended runs knew of."""
        self._left: deque[DeliveredRecord] = deque()  # bounded by the credit given to the daemon
        self._unfinished: list[DeliveredRecord] = []  # bounded by the handlers of ended runs
        self._paused = False

    def begin(self, runner: "KeyedRunner") -> None:
        """A run begins; it knows which refused records are to come again."""
        self._refuse_unfinished()
        chains, self._chains = self._chains, {}
        runner.resume(chains)
        runner.set_paused(self._paused)
        self._runners.append(runner)

    def set_paused(self, paused: bool) -> None:
        """Let no run hand out a record, or let them go on."""
        self._paused = paused
        for runner in self._runners:
            runner.set_paused(paused)

    def take_no_more(self) -> None:
        """No more records come."""
        for runner in self._runners:
            runner.take_no_more()

    def end(self, runner: "KeyedRunner", *, keep: bool) -> None:
        """A run is over; ``keep``: more records will be taken."""
        self._runners.remove(runner)
        if keep:
            records, chains = runner.left()
            self._left.extendleft(reversed([each for each in records if not _returned(each)]))
            self._chains.update(chains)
            self._unfinished += runner.unfinished()
            if self._runners:
                self._refuse_unfinished()

    def leave(self, records: "Iterable[DeliveredRecord]") -> None:
        """A run that ends had not even taken these."""
        self._left.extend(records)

    def next_left(self) -> "DeliveredRecord | None":
        """The next record that an ended run left."""
        return self._left.popleft() if self._left else None

    def refuse_left(self) -> "Sequence[Handout]":
        """Have the records that were left come again: they are taken in another way from now on.

        If a refusal would count as a failed attempt, these records are returned instead.
        """
        if self._unfinished:
            self._refuse_unfinished()
        return self._take_left() if self._left else ()

    def _take_left(self) -> "Sequence[Handout]":
        pieces: dict[Handout, list[int]] = {}
        while self._left and not self._paused:
            record = self._left.popleft()
            grant = grant_behind(record)
            if grant.stopped:
                continue
            if grant.queues:
                pieces.setdefault(cast("Handout", record._source), []).append(record._at)
            else:
                grant.hand_out(record._at)
                grant.nak(((record._at, record._at + 1),), 0)
        return [piece.again(offsets) for piece, offsets in pieces.items()]

    def _refuse_unfinished(self) -> None:
        """Have the records of cancelled handlers come again, unless they were acknowledged after
        all."""
        unfinished, self._unfinished = self._unfinished, []
        for record in unfinished:
            grant = grant_behind(record)
            if not (grant.stopped or record.acked):
                grant.nak(((record._at, record._at + 1),), 0, _CANCELLED)

    def drop(self, grant: "HeldGrant") -> None:
        """Nothing of the grant is handed out any more."""
        for runner in self._runners:
            runner.drop(grant)
        self._chains = {at: each for at, each in self._chains.items() if each.grant is not grant}
        self._left = deque(each for each in self._left if grant_behind(each) is not grant)
        self._unfinished = [each for each in self._unfinished if grant_behind(each) is not grant]

    def refused_acked(self, grant: "HeldGrant") -> None:
        """A refused record was acknowledged after all."""
        for runner in self._runners:
            runner.refused_acked(grant)


def _returned(record: "DeliveredRecord") -> bool:
    """Give a record of an ordered group back to where it came from, before all of its key."""
    order = order_of(grant_behind(record))
    if order is not None:
        order.left(record)
    return order is not None

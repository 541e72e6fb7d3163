"""Records and batches that a thread acknowledges, without a loop of its own.

Invariant: they are those of `dss_client.record`, except for the methods that settle them: these
return when the promise of the asynchronous ones holds.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from dss_client._failure import Error
from dss_client._retried import RetriedColumns, RetriedFields
from dss_client._retried import RetriedRecord as AsyncRetried
from dss_client.record import DeliveredBatch as AsyncBatch
from dss_client.record import DeliveredRecord as AsyncRecord
from dss_client.record import (
    DeliveredSource,
    HandedOutBatch,
    HandedOutRecord,
    rows_of,
)

if TYPE_CHECKING:
    from dss_client._handout import Handout
    from dss_client.sync._acks import AckBox

Kind = TypeVar("Kind", bound=HandedOutRecord)


class Source(DeliveredSource, Protocol):
    """What a record shares with the others that came with it."""

    taker: "AckBox"


class DeliveredRecord(HandedOutRecord):
    """A record that a subscription handed out, to be acknowledged."""

    __slots__ = ()
    _source: Source

    @property
    def acked(self) -> bool:
        """Whether it was acknowledged, perhaps when it was handed out before."""
        return self._settled(_acked)

    @property
    def refused(self) -> bool:
        """Whether it was refused, and will come again or was moved to a queue."""
        return self._settled(_refused)

    def ack(self, *, sync: bool = False) -> None:
        """Acknowledge it. Returns when handed over; with ``sync``, when durable.

        Raises:
            GrantNotHeld: with ``sync``: its stream was taken back before, so it does not count.
            OutcomeUnknown: with ``sync``: the connection or the loan of its stream ended before
                the answer came. If the ack did not count, it comes again, marked.
        """
        taker = self._source.taker
        if sync:
            taker.portal.call(taker.deliver)
            taker.portal.run(as_kind(AsyncRecord, self).ack(sync=True))
            return
        taker.leave(self._at)
        if not taker.awake:
            taker.wake()

    def nak(self, delay: float | None = None, error: Error = None) -> None:
        """Refuse it: it comes again after ``delay`` seconds, or the daemon's own back-off.

        ``error`` says why: a text, or an exception. In a group with ``max_deliver`` the record goes
        to the retry queue, or among the dead letters after the last attempt; a group without it
        keeps no error, and the record comes again for ever.

        Raises:
            IllegalArgument: ``delay`` is no number of seconds from 0 to a day.
        """
        taker = self._source.taker
        taker.portal.call(taker.deliver)
        taker.portal.run(as_kind(AsyncRecord, self).nak(delay, error))

    def reject(self, error: Error = None) -> None:
        """Refuse it for good: it goes to the dead letters of its group at once.

        A group without ``max_deliver`` has none: there it is refused as by `nak`.
        """
        taker = self._source.taker
        taker.portal.call(taker.deliver)
        taker.portal.run(as_kind(AsyncRecord, self).reject(error))

    def in_progress(self) -> None:
        """Work on it goes on: its ack wait begins anew."""
        self._source.taker.portal.run(as_kind(AsyncRecord, self).in_progress())

    def _settled(self, question: "Callable[[AsyncRecord], bool]") -> bool:
        taker = self._source.taker
        taker.portal.call(taker.deliver)
        return taker.portal.call(question, as_kind(AsyncRecord, self))


class DeliveredBatch(HandedOutBatch):
    """A batch that a subscription handed out, to be acknowledged as one."""

    __slots__ = ()
    _source: Source

    def __iter__(self) -> Iterator[DeliveredRecord]:
        """Its records, one by one."""
        return rows_of(DeliveredRecord, self._source, self._decoded)

    def ack(self, *, sync: bool = False) -> None:
        """Acknowledge all of it. Returns when handed over; with ``sync``, when durable.

        Raises:
            GrantNotHeld: with ``sync``: its stream was taken back before, so it does not count.
            OutcomeUnknown: with ``sync``: the connection or the loan of its stream ended before
                the answer came. If the ack did not count, it comes again, marked.
        """
        taker = self._source.taker
        taker.ranges.append(self._source.ranges)
        if sync:
            taker.portal.call(taker.deliver)
            taker.portal.run(self._source.grant.settled(self._source.ranges))
        elif not taker.awake:
            taker.wake()

    def nak(self, delay: float | None = None, error: Error = None) -> None:
        """Refuse all of it: it comes again after ``delay`` seconds, or the daemon's back-off.

        ``error`` says why, as for `DeliveredRecord.nak`.

        Raises:
            IllegalArgument: ``delay`` is no number of seconds from 0 to a day.
        """
        taker = self._source.taker
        taker.portal.call(taker.deliver)
        taker.portal.run(self._in_the_loop.nak(delay, error))

    def reject(self, error: Error = None) -> None:
        """Refuse all of it for good, as `DeliveredRecord.reject` does."""
        taker = self._source.taker
        taker.portal.call(taker.deliver)
        taker.portal.run(self._in_the_loop.reject(error))

    def in_progress(self) -> None:
        """Work on it goes on: its ack wait begins anew."""
        self._source.taker.portal.run(self._in_the_loop.in_progress())

    @property
    def _in_the_loop(self) -> AsyncBatch:
        return AsyncBatch(self._source, self._decoded)


class RetriedRecord(RetriedFields, DeliveredRecord):
    """A record of a retry queue, to be acknowledged."""

    __slots__ = ()


class RetriedBatch(RetriedColumns, DeliveredBatch):
    """A batch of a retry queue, to be acknowledged as one."""

    __slots__ = ()

    def __iter__(self) -> Iterator[DeliveredRecord]:
        """Its records, one by one."""
        return self._rows_of(RetriedRecord)


_RETRIED: dict[type[HandedOutRecord], type[HandedOutRecord]] = {
    AsyncRecord: AsyncRetried,
    DeliveredRecord: RetriedRecord,
}


def of_level(kind: type[Kind], level: int) -> type[Kind]:
    """The class for records of a kind that come from a level."""
    return cast("type[Kind]", _RETRIED[kind]) if level else kind


def as_kind(kind: type[Kind], record: HandedOutRecord) -> Kind:
    """The same record, to be settled in another way."""
    other = of_level(kind, record.level)()
    other._source = record._source
    other._at = record._at
    other.subject = record.subject
    other.key = record.key
    other.payload = record.payload
    other.headers = record.headers
    other.timestamp_us = record.timestamp_us
    return other


def batch_for_threads(batch: AsyncBatch, taker: "AckBox") -> DeliveredBatch:
    """The same batch, to be settled from any thread."""
    source = cast("Handout", batch._source)
    source.taker = taker
    kind = RetriedBatch if batch.level else DeliveredBatch
    return kind(source, batch._decoded)


def _acked(record: AsyncRecord) -> bool:
    return record.acked


def _refused(record: AsyncRecord) -> bool:
    return record.refused

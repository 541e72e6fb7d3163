"""Messages of the facade, and the state of those that a subscription has handed out.

A message is the record itself, made in the subscription's own loop; its further fields are computed
when asked for. Invariant: of ack, nak and term, the first call of a message counts. The policy of
the consumer decides what an ack means, not what the program asked for.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, cast

from dss_client._done import DONE
from dss_client._retried import EntryHeaders, RetriedRecord
from dss_client.jetstream._subjects import dotted
from dss_client.jetstream.config import ACK_WAIT_S, AckPolicy, ConsumerInfo
from dss_client.jetstream.tokens import AckSubject
from dss_client.record import DeliveredRecord, HeaderPairs, Record
from dss_core.errors import MessageSettled, NotOffered
from dss_core.ids import StreamName

if TYPE_CHECKING:
    from dss_client._grant import HeldGrant

ACCOUNT = "dss"
"""What stands in an acknowledgement subject for the account, which DSS has none of."""


@dataclass(frozen=True, slots=True)
class SequencePair:
    """The sequence numbers of a message."""

    consumer: int | None
    """None: DSS counts no deliveries of a consumer."""
    stream: int
    """From 1, in its stream of the log: where there are several, others have the same number."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a message."""

    sequence: SequencePair
    num_delivered: int
    num_pending: int | None
    """None: only `consumer_info` tells."""
    timestamp: datetime
    """The producer's, where it gave one; else when the message was sent."""
    stream: str
    consumer: str
    partition: str
    """The stream of the log, as TOPIC/ORDINAL/PARTITION."""
    domain: str = ""


class Msg(Record):
    """A message that was handed out. Each subscription has a class of its own, made by `Hold`.

    Its subject and its headers are JetStream's already in the rows that it is made of.
    """

    __slots__ = ("_settled",)

    _settled: bool
    of: ClassVar["Hold"]
    native: ClassVar[type[DeliveredRecord]] = DeliveredRecord
    if TYPE_CHECKING:
        data: bytes
        """The payload."""
        headers: dict[str, str] | None  # type: ignore[assignment] # as JetStream has them
        header: dict[str, str] | None  # type: ignore[assignment]

    def record(self) -> DeliveredRecord:
        """The record of DSS that it is."""
        record = self.native()
        record._source = self._source  # type: ignore[assignment] # handed out, so it has a grant
        record._at = self._at
        record.subject = self.subject
        record.key, record.payload = self.key, self.payload
        record.headers = self.headers or ()  # type: ignore[assignment] # nobody looks at them
        record.timestamp_us = self.timestamp_us
        return record

    @property
    def metadata(self) -> Metadata:
        """Its metadata."""
        record, of = self.record(), self.of
        attempt = record.attempt if of.acknowledges else 1
        sequence = SequencePair(None, record.offset + 1)
        names = of.info.stream_name, of.info.name, record.stream
        return Metadata(sequence, attempt, None, record.timestamp, *names)

    @property
    def reply(self) -> str:
        """The acknowledgement subject, for tools that read it; nothing is sent to it.

        DSS counts neither a consumer's deliveries nor pending messages: both tokens are 0. Two more
        tokens follow those of JetStream: the partition, and the epoch of its grant.
        """
        told = self.metadata
        name = StreamName.parse(told.partition)
        epoch = self._source.grant.grant_epoch if self.of.acknowledges else 0  # type: ignore[attr-defined]
        return str(
            AckSubject(
                told.stream,
                told.consumer,
                told.num_delivered,
                told.sequence.stream,
                0,
                self.timestamp_us * 1_000,
                0,
                domain="",
                account=ACCOUNT,
                more=(f"{name.ordinal}-{name.partition}", str(epoch)),
            )
        )

    @property
    def is_settled(self) -> bool:
        """Whether a checked call settled it; a plain ack is not checked."""
        return hasattr(self, "_settled")

    @property
    def is_acked(self) -> bool:
        """Whether it was acknowledged, refused or terminated."""
        return self.is_settled or (self.of.acknowledges and self.record().acked)

    def ack(self) -> Awaitable[None]:
        """Acknowledge it; the call itself does so, as that of `DeliveredRecord.ack`."""
        if self.of.settles(self):
            self.of.ack(self)
        return DONE

    async def ack_sync(self, timeout: float = 1.0) -> "Msg":  # noqa: ASYNC109 - as JetStream has it
        """Acknowledge it, and wait until that is durable.

        Raises:
            TimeoutError: the outcome is unknown; it may be acknowledged again.
            GrantNotHeld, OutcomeUnknown: its stream was taken back, or the connection was lost.
        """
        if self.of.settles(self):
            with self._settling():
                async with asyncio.timeout(timeout):
                    self.of.ack(self)
                    await self.record().ack(sync=True)
        return self

    async def nak(self, delay: float | None = None) -> None:
        """Refuse it: it comes again after so many seconds, or at once."""
        if self.of.settles(self):
            with self._settling():
                await self.record().nak(max(delay or 0.0, 0.0))
            self.of.refused(self)

    async def term(self, reason: str | None = None) -> None:
        """Never deliver it again: it becomes a dead letter if the consumer has ``max_deliver``.

        Otherwise it counts as acknowledged; it stays in the stream, as in JetStream.
        """
        if self.of.settles(self):
            record = self.record()
            if record._source.grant.queues:
                await record.reject(reason)
            else:
                record.ack()
            self.of.refused(self)

    @contextmanager
    def _settling(self) -> Iterator[None]:
        """If settling fails, nothing is settled: the program may call again."""
        try:
            yield
        except BaseException:
            del self._settled
            raise

    async def in_progress(self) -> None:
        """Work on it goes on: its ack wait begins anew."""
        if self.of.acknowledges and not self.is_acked:
            self.of.extend(self)
            await self.record().in_progress()


# The same slots under JetStream's names.
for _name, _slot in {"data": "payload", "header": "headers"}.items():
    setattr(Msg, _name, vars(Record)[_slot])


class RetriedHeaders(dict[str, str]):
    """The headers of a message that comes again, and what the queue says of it."""

    def __init__(self, entry: EntryHeaders) -> None:
        super().__init__(headers_of(entry) or {})
        self.entry = entry


class RetriedMsg(Msg):
    """A message that comes again from the retry queue of its group."""

    __slots__ = ()

    native = RetriedRecord

    def record(self) -> DeliveredRecord:
        """The record of DSS that it is."""
        record = super().record()
        record.headers = cast("RetriedHeaders", self.headers).entry
        return record


def headers_of(pairs: HeaderPairs) -> dict[str, str] | None:
    """Headers as JetStream has them."""
    return {name: value.decode(errors="replace") for name, value in pairs} or None


def as_messages(
    subjects: list[str], headers: list[HeaderPairs]
) -> tuple[list[str], list[dict[str, str] | None]]:
    """Two columns of rows, as JetStream has them."""
    # Most frames have one subject, or few, and no headers: that costs a record next to nothing.
    names = {subject: dotted(subject) for subject in dict.fromkeys(subjects)}
    one = names.popitem()[1] if len(names) == 1 else None
    seen = [one] * len(subjects) if one is not None else [names[each] for each in subjects]
    any_headers = any(headers)
    return seen, [headers_of(each) for each in headers] if any_headers else [None] * len(headers)


def _plain_ack(message: Msg) -> Awaitable[None]:
    """`Msg.ack` where nothing but the record's own ack is to be done; as `DeliveredRecord.ack`."""
    acks = message._source.acks  # type: ignore[attr-defined]
    offset = message._at
    if offset == acks.run_end:
        acks.run_end = offset + 1
    else:
        acks.leave(offset)
    return DONE


Key = tuple["HeldGrant", int]


class Hold:
    """The messages that a subscription has handed out, and what an ack means under its policy."""

    def __init__(self, info: ConsumerInfo, *, strict_acks: bool = False) -> None:
        config = info.config
        self.info = info
        self.policy = config.ack_policy or AckPolicy.EXPLICIT
        self.acknowledges = self.policy != AckPolicy.NONE
        self.strict_acks = strict_acks
        self._window = max(config.max_ack_pending or 0, 0) if self.acknowledges else 0
        self._ack_wait_s = config.ack_wait or ACK_WAIT_S
        self._out: OrderedDict[Key, float] = OrderedDict()
        """Unsettled messages, and until when each counts; kept only with a window, which bounds
        it."""
        self._in_order: dict[HeldGrant, deque[int]] = {}
        """The unacknowledged messages of each stream, if an ack stands for all before it."""
        self._room = asyncio.Event()
        self._ended = False
        self.looks_at_each = self.policy != AckPolicy.EXPLICIT or bool(self._window)
        """Whether each message has to be noted when it is handed out."""
        self.kind: type[Msg] = type("Msg", (Msg,), {"__slots__": (), "of": self})
        """The class of messages of this subscription."""
        self.retried_kind = type("RetriedMsg", (RetriedMsg,), {"__slots__": (), "of": self})
        """The class of those that come from the retry queue of the group."""
        if not (self.looks_at_each or strict_acks):
            self.kind.ack = _plain_ack  # type: ignore[method-assign,assignment]

    def refused(self, message: Msg) -> None:
        """The message was settled otherwise than by an ack; a later ack must not undo that."""
        self.let_go(message)
        self.kind.ack = Msg.ack  # type: ignore[method-assign]

    def end(self) -> None:
        """Nothing more is handed out, so end the waits for room."""
        self._ended = True
        self._room.set()

    def settles(self, message: Msg) -> bool:
        """Whether this call is the first to settle the message; it counts from here on.

        Raises:
            MessageSettled: with ``strict_acks``, and it is not.
        """
        if not self.acknowledges:
            return False
        if hasattr(message, "_settled"):
            if self.strict_acks:
                raise MessageSettled(subject=message.subject)
            return False
        message._settled = True
        return True

    def ack(self, message: Msg) -> None:
        """Acknowledge it, and with policy ``all`` what was handed out of its stream before it."""
        self.let_go(message)
        if self.policy != AckPolicy.ALL:
            message.record().ack()
            return
        grant, offset = _key(message)
        pending = self._in_order.get(grant, deque())
        done = [offset]
        while pending and pending[0] <= offset:
            done.append(pending.popleft())
            self._drop((grant, done[-1]))
        grant.ack(tuple((at, at + 1) for at in sorted(set(done))))

    def hand_out(self, messages: Iterable[Msg]) -> None:
        """These messages go to the program now."""
        now = monotonic()
        for message in messages:
            if not self.acknowledges:
                message.record().ack()
                continue
            grant, offset = _key(message)
            if self._window:
                self._out[grant, offset] = now + self._ack_wait_s
            if self.policy == AckPolicy.ALL:
                self._in_order = {held: each for held, each in self._in_order.items() if each}
                self._in_order.setdefault(grant, deque()).append(offset)

    def let_go(self, message: Msg) -> None:
        """The message takes no more room in the window."""
        if self._out:
            self._drop(_key(message))

    def _drop(self, key: Key) -> None:
        if self._out.pop(key, None) is not None:
            self._room.set()

    def extend(self, message: Msg) -> None:
        """Its ack wait begins anew."""
        key = _key(message)
        if key in self._out:
            self._out[key] = monotonic() + self._ack_wait_s
            self._out.move_to_end(key)

    async def room(self, wanted: int) -> int:
        """How many more messages may be handed out, up to ``wanted``; waits until there is room for
        one."""
        if not self._window:
            return wanted
        while (free := self._window - len(self._out)) <= 0:
            if self._ended:
                return wanted
            self._room.clear()
            left_s = next(iter(self._out.values())) - monotonic()
            try:
                async with asyncio.timeout(max(left_s, 0)):
                    await self._room.wait()
            except TimeoutError:
                # The ack wait of a message is over: it comes again, and the program has lost its
                # claim.
                self._out.popitem(last=False)
        return min(free, wanted)


def _key(message: Msg) -> Key:
    return cast("HeldGrant", message._source.grant), message._at  # type: ignore[attr-defined]


def refuse_reserved(headers: dict[str, str] | None) -> None:
    """Refuse headers by which a publisher asks a JetStream server for something.

    Raises:
        NotOffered: there is one.
    """
    for name in headers or ():
        if name.lower().startswith("nats-"):
            why = (
                "a producer of DSS is never stored twice by its own repeats, and no header makes "
                "the daemon compare, expire or replace messages"
            )
            raise NotOffered(what=f"the header {name}", why=why)

"""Encodes and decodes the items of a session.

The session itself checks the numbers of a client. Only values that its types cannot express are
refused here.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import assert_never

from dss_api.v1 import sessions_pb2, types_pb2
from dss_core.errors import DssError, IllegalArgument
from dss_core.lane import LEVELS_MAX, cut_text, grant_and_level
from dss_core.limits import NAK_DELAY_MS_MAX, SETTLE_RANGES_MAX
from dss_core.progress import Range, Ranges
from dssd.limits import REDELIVERY_MS_MAX, SETTLE_STEP_RANGES
from dssd.machines.delivery.events import (
    AskBack,
    Deliver,
    Nak,
    Settle,
    Settles,
    TakeBack,
    TakenBack,
    ranges_in,
)
from dssd.rpc.errors import to_proto
from dssd.rpc.start_points import start_from
from dssd.sessions.client_items import (
    Bundle,
    Down,
    FinishRevoke,
    Gone,
    Granted,
    Opened,
    Opening,
    PauseSet,
    PauseTaken,
    PingSent,
    PongSent,
    Refused,
    Revoke,
    Revoked,
    Settled,
    Status,
    Subscribe,
    Subscribed,
    Unsubscribe,
    UnsubscribedItem,
    Up,
)

ITEM_JOINED_BYTES_MIN = 96 << 10
"""From this size on an item with records is assembled from bytes without protobuf, which copies
them three times. Below it protobuf is faster (measured)."""


_Down = sessions_pb2.SessionDown

_LENGTH_DELIMITED = 2
_WIRE_TYPE_BITS = 3
"""Protobuf's wire type of a bytes or message field, and its place in a tag."""

_DELIVER = _Down.DELIVER_FIELD_NUMBER
_BUNDLE = _Down.BUNDLE_FIELD_NUMBER
_BUNDLED = sessions_pb2.DeliveryBundle.DELIVERIES_FIELD_NUMBER
_FRAMES = sessions_pb2.Deliver.FRAMES_FIELD_NUMBER

assert NAK_DELAY_MS_MAX >= REDELIVERY_MS_MAX

_RANGES_TAKEN = SETTLE_RANGES_MAX + 1
"""Read at most one more than allowed, which is enough to refuse."""


def opening_from(message: sessions_pb2.Open, principal: str) -> Opening:
    """The client's first item."""
    return Opening(
        client_id=message.client_id,
        clean_start=message.clean_start,
        session_id=message.session_id,
        expiry_s=message.session_expiry_s,
        credit_records=message.credit_records if message.HasField("credit_records") else None,
        credit_bytes=message.credit_bytes if message.HasField("credit_bytes") else None,
        takes_bundles=message.takes_bundles,
        principal=principal,
        features=frozenset(message.features),
    )


def items_from(message: sessions_pb2.SessionUp) -> Iterable[Up]:
    """An item of the client; settles of many ranges are split into several items.

    Raises:
        IllegalArgument: it is empty, unknown, or a second `open`.
    """
    if message.WhichOneof("item") == "settle":
        return _settles_from(message.settle.settles)
    return (_item_from(message),)


def _settles_from(messages: Iterable[sessions_pb2.Settle]) -> Iterator[Settles]:
    step: list[Settle] = []
    size = 0
    for message in messages:
        settle = _settle_from(message)
        step.append(settle)
        size += 1 + ranges_in(settle)
        if size >= SETTLE_STEP_RANGES:
            yield Settles(tuple(step))
            step, size = [], 0
    if step:
        yield Settles(tuple(step))


def _item_from(message: sessions_pb2.SessionUp) -> Up:
    match message.WhichOneof("item"):
        case "revoke_finished":
            return FinishRevoke(message.revoke_finished.grant)
        case "ping":
            return PingSent(message.ping.token)
        case "pause_taken":
            return PauseTaken(message.pause_taken.subscription, message.pause_taken.turn)
        case "taken_back":
            answer = message.taken_back
            return TakenBack(answer.grant, answer.number, answer.out)
        case "subscribe":
            return _subscribe_from(message.subscribe)
        case "unsubscribe":
            return Unsubscribe(message.unsubscribe.subscription)
        case "open":
            raise IllegalArgument(argument="open", rule="it comes once, as the first item")
        case _:
            raise IllegalArgument(argument="item", rule="one that this daemon knows")


def refused(error: DssError, *, final: bool = False) -> sessions_pb2.SessionDown:
    """An error about the session."""
    return _about_session(Refused(error, final=final))


def encoded(item: Down) -> sessions_pb2.SessionDown | bytes:
    """An item for the client; one with many bytes of records as it is on the wire."""
    if isinstance(item, Deliver | Bundle):
        deliveries = item.deliveries if isinstance(item, Bundle) else (item,)
        if sum([len(each.frames) for each in deliveries]) >= ITEM_JOINED_BYTES_MIN:
            return b"".join(_parts_of(item))
        return _of_records(item)
    if isinstance(item, Granted | Revoke | Revoked | Gone | Settled):
        return _about_grant(item)
    if isinstance(item, TakeBack | AskBack):
        return _about_keys(item)
    if isinstance(item, Subscribed | UnsubscribedItem | Status | PauseSet):
        return _about_subscription(item)
    return _about_session(item)


def _subscribe_from(message: sessions_pb2.Subscribe) -> Subscribe:
    return Subscribe(
        subscription=message.subscription,
        filter=message.filter,
        start=start_from(message.start) if message.HasField("start") else None,
        ack_wait_ms=message.ack_wait_ms if message.HasField("ack_wait_ms") else None,
        by_shard=message.by_shard,
    )


def _settle_from(message: sessions_pb2.Settle) -> Settle:
    naks: tuple[Nak, ...] = ()
    if message.naks:
        naks = tuple(
            Nak(
                nak.start,
                nak.end,
                min(nak.delay_ms, NAK_DELAY_MS_MAX) if nak.HasField("delay_ms") else None,
                cut_text(nak.error),
                cut_text(nak.error_type),
                nak.reject,
            )
            for nak in message.naks[:_RANGES_TAKEN]
        )
    return Settle(
        _number_of(message.grant, message.level),
        _ranges_from(message.acked),
        naks,
        message.frontier,
        message.token,
        _ranges_from(message.in_progress) if message.in_progress else (),
        _ranges_from(message.handed_out) if message.handed_out else (),
    )


def _number_of(grant: int, level: int) -> int:
    """The number of a grant and level. An unknown level maps to a level without deliveries; an
    unknown grant keeps its number."""
    return grant if grant % LEVELS_MAX else grant + min(level, LEVELS_MAX - 1)


def _ranges_from(ranges: Sequence[types_pb2.Range]) -> Ranges:
    return tuple((each.start, each.end) for each in ranges[:_RANGES_TAKEN])


def _ranges(ranges: Iterable[Range]) -> list[types_pb2.Range]:
    return [types_pb2.Range(start=start, end=end) for start, end in ranges]


def _of_records(item: Deliver | Bundle) -> sessions_pb2.SessionDown:
    # Filled in place: protobuf copies a message, with all its bytes, into its parent.
    down = _Down()
    if isinstance(item, Deliver):
        _fill(down.deliver, item)
    else:
        for each in item.deliveries:
            _fill(down.bundle.deliveries.add(), each)
    return down


def _fill(deliver: sessions_pb2.Deliver, item: Deliver) -> None:
    deliver.grant, deliver.level = grant_and_level(item.grant)
    deliver.frames = item.frames
    if item.mask:
        deliver.mask.extend(_ranges(item.mask))
    deliver.redelivered = item.redelivered
    deliver.attempt = item.attempt


def _parts_of(item: Deliver | Bundle) -> list[bytes]:
    """The bytes of an item, in parts that hold the frames as they are.

    Protobuf would copy the frames into a message, out of it, and into bytes.
    """
    if isinstance(item, Deliver):
        return _field(_DELIVER, _of_delivery(item))
    each = (_field(_BUNDLED, _of_delivery(delivery)) for delivery in item.deliveries)
    return _field(_BUNDLE, list(chain.from_iterable(each)))


def _of_delivery(item: Deliver) -> list[bytes]:
    deliver = sessions_pb2.Deliver()
    _fill(deliver, item._replace(frames=b""))
    return [deliver.SerializeToString(), *_field(_FRAMES, [item.frames])]


def _field(number: int, parts: list[bytes]) -> list[bytes]:
    """A field of bytes, or with a message, as it stands on the wire."""
    tag = number << _WIRE_TYPE_BITS | _LENGTH_DELIMITED
    return [_varint(tag) + _varint(sum(map(len, parts))), *parts]


def _varint(value: int) -> bytes:
    raw = bytearray()
    while value > 0x7F:
        raw.append(value & 0x7F | 0x80)
        value >>= 7
    raw.append(value)
    return bytes(raw)


def _about_grant(item: Granted | Revoke | Revoked | Gone | Settled) -> sessions_pb2.SessionDown:
    match item:
        case Granted(grant, subscription, stream, grant_epoch, progress, storage_topic_id):
            state = types_pb2.Progress(floor=progress.floor, ranges=_ranges(progress.ranges))
            return _Down(
                granted=sessions_pb2.Granted(
                    grant=grant,
                    subscription=subscription,
                    stream=stream,
                    grant_epoch=grant_epoch,
                    progress=state,
                    storage_topic_id=storage_topic_id,
                    queues=item.queues,
                    ordered=item.ordered,
                    shards=item.shard.of if item.shard else 0,
                    shard=item.shard.number if item.shard else 0,
                    shard_epoch=item.shard_epoch,
                )
            )
        case Revoke(grant, deadline_ms):
            return _Down(revoke=sessions_pb2.Revoke(grant=grant, deadline_ms=deadline_ms))
        case Revoked(grant, reason):
            return _Down(revoked=sessions_pb2.Revoked(grant=grant, reason=reason))
        case Gone(number, ranges):
            grant, level = grant_and_level(number)
            gone = sessions_pb2.Gone(grant=grant, ranges=_ranges(ranges), level=level)
            return _Down(gone=gone)
        case Settled(token):
            return _Down(settled=sessions_pb2.Settled(token=token))
        case _:
            assert_never(item)


def _about_keys(item: TakeBack | AskBack) -> sessions_pb2.SessionDown:
    grant, level = grant_and_level(item.grant)
    number = item.number if isinstance(item, AskBack) else 0
    ranges = _ranges(item.ranges)
    return _Down(
        take_back=sessions_pb2.TakeBack(grant=grant, level=level, ranges=ranges, number=number)
    )


def _about_subscription(
    item: Subscribed | UnsubscribedItem | Status | PauseSet,
) -> sessions_pb2.SessionDown:
    match item:
        case Subscribed(subscription, group, declared):
            return _Down(
                subscribed=sessions_pb2.Subscribed(
                    subscription=subscription, group=group, declared=declared
                )
            )
        case UnsubscribedItem(subscription):
            return _Down(unsubscribed=sessions_pb2.Unsubscribed(subscription=subscription))
        case Status(subscription, state, reason):
            return _Down(
                status=sessions_pb2.Status(subscription=subscription, state=state, reason=reason)
            )
        case PauseSet(subscription, paused, turn):
            return _Down(
                pause_set=sessions_pb2.PauseSet(subscription=subscription, paused=paused, turn=turn)
            )
        case _:
            assert_never(item)


def _about_session(item: Opened | Refused | PongSent) -> sessions_pb2.SessionDown:
    match item:
        case Opened():
            return _Down(opened=_opened(item))
        case Refused(error, subscription, grant, final):
            return _Down(
                error=sessions_pb2.SessionError(
                    error=to_proto(error), subscription=subscription, grant=grant, final=final
                )
            )
        case PongSent(token):
            return _Down(pong=sessions_pb2.Pong(token=token))
        case _:
            assert_never(item)


def _opened(item: Opened) -> sessions_pb2.Opened:
    return sessions_pb2.Opened(
        client_id=item.client_id,
        session_id=item.session_id,
        session_epoch=item.session_epoch,
        session_present=item.session_present,
        lease_ms=item.lease_ms,
        credit_records=item.credit_records,
        credit_bytes=item.credit_bytes,
        features=item.features,
        incarnation=item.incarnation,
    )

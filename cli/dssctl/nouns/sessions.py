"""Sessions and what they hold: what each field means, and how a table shows it."""

from dss_core.times import text_of_span
from dssctl.fields.describing import PAGE
from dssctl.fields.model import Fields, items, moment, number, text
from dssctl.output import Column, Item, Kind

SESSION: Fields = (
    text("client_id", "The id of its client."),
    text("state", "connected or away."),
    moment("since", "Since when it is in this state."),
    number("subscriptions", "Subscriptions of groups."),
    number("private_subscriptions", "Subscriptions of this session alone."),
    number("expiry_s", "Seconds that it is kept while its client is away."),
    text("peer", "Where its client is connected from.", optional=True),
    text("principal", "The principal that it belongs to."),
    items("memberships", "Membership", "Groups that it is in; of describe only.", absent=True),
    items("grants", "HeldStream", "Streams that it holds; of describe only.", absent=True),
    *PAGE,
)

MEMBERSHIP: Fields = (
    text("group", "NAME@FILTER of the group."),
    text("borrower_id", "Its id as a member."),
    number("streams", "Streams that it holds there."),
    moment("connected_at", "When it joined."),
)

HELD_STREAM: Fields = (
    text("stream", "The stream."),
    text("group", "NAME@FILTER of the group."),
    text("state", "granting, granted or revoking."),
    number("grant_epoch", "Rises with each holder."),
    number("lag", "Records that are not acknowledged."),
    text("stall", "Why it makes no progress.", optional=True),
)


def _expiry(item: Item, _now_us: int) -> str:
    expiry_s = item["expiry_s"]
    assert isinstance(expiry_s, int)
    return text_of_span(expiry_s * 1_000)


SESSION_KIND = Kind(
    "Session",
    (
        Column("client_id", "CLIENT"),
        Column("state", "STATE", styles={"connected": "green"}),
        Column("since", "SINCE", right=True),
        Column("subscriptions", "SUBSCRIPTIONS", right=True),
        Column("peer", "PEER"),
        Column("private_subscriptions", "PRIVATE", right=True, wide=True),
        Column("expiry_s", "EXPIRY", right=True, cell=_expiry, wide=True),
        Column("principal", "PRINCIPAL", wide=True),
    ),
    lambda item: str(item["client_id"]),
)


MEMBERSHIP_KIND = Kind(
    "Membership",
    (
        Column("group", "GROUP"),
        Column("streams", "STREAMS", right=True),
        Column("connected_at", "MEMBER-FOR", right=True),
        Column("borrower_id", "BORROWER", wide=True),
    ),
    lambda item: str(item["group"]),
)
HELD_KIND = Kind(
    "HeldStream",
    (
        Column("stream", "STREAM"),
        Column("group", "GROUP"),
        Column("state", "STATE", styles={"granted": "green", "revoking": "yellow"}),
        Column("grant_epoch", "EPOCH", right=True),
        Column("lag", "LAG", right=True),
        Column("stall", "STALLED"),
    ),
    lambda item: str(item["stream"]),
)

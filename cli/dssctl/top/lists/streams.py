"""The streams of a group, its members, and their records in flight."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dssctl.output.escape import escaped
from dssctl.top.lists.listing import Column, Listing, Pen, Scene
from dssctl.top.model.places import Ordering, Place
from dssctl.top.model.standing import STUCK
from dssctl.top.paint import amounts
from dssctl.top.paint.spans import Look

if TYPE_CHECKING:
    from dss_client import (
        RecordStanding,
        StreamSums,
        Stuck,
        WatchedGrant,
        WatchedLag,
        WatchedMember,
    )


class StreamRow(NamedTuple):
    """A stream of a group: its holder, its progress, its records in flight."""

    group: str
    stream: str
    grant: "WatchedGrant | None"
    lag: "WatchedLag | None"
    sums: "StreamSums | None" = None
    standing: "RecordStanding | None" = None
    stuck: "Stuck | None" = None
    """Why it is stuck, if it is."""

    @property
    def lagging(self) -> int:
        """Records not acknowledged."""
        return self.lag.lag if self.lag else 0

    @property
    def state(self) -> str:
        """The state of its grant; stalled, if it is held and nothing is delivered."""
        if self.grant is None:
            return "-"
        stalls = self.grant.stall and self.grant.state != "closed"
        state = "stalled" if stalls else self.grant.state
        return STUCK if self.stuck and state == "granted" else state

    @property
    def oldest_ms(self) -> int | None:
        """When its oldest unacknowledged record was appended."""
        oldest_us = self.lag.oldest_unacked_us if self.lag else None
        return None if oldest_us is None else oldest_us // 1_000


def stream_order(stream: str) -> tuple[str, int, int]:
    """Sorts by topic, then by number: orders/0/10 comes after orders/0/9."""
    topic, _, rest = stream.rpartition("/")
    topic, _, ordinal = topic.rpartition("/")
    number = int(rest) if rest.isdecimal() else 0
    return (topic, int(ordinal) if ordinal.isdecimal() else 0, number)


def stream_rows(scene: Scene) -> Mapping[str, StreamRow]:
    """All streams of the group."""
    items, group = scene.picture.items, scene.place.group
    grants, lags = items.grants.get(group, {}), items.lags.get(group, {})
    answer = scene.answer
    sums = {each.stream: each for each in answer.sums} if answer else {}
    standings = {each.stream: each for each in answer.standings} if answer else {}
    stuck = {each.stream: each for each in scene.picture.stuck if each.group == group}
    names = sorted(grants.keys() | lags.keys(), key=stream_order)
    return {
        name: StreamRow(
            *(group, name, grants.get(name), lags.get(name), sums.get(name), standings.get(name)),
            stuck.get(name),
        )
        for name in names
    }


def is_stream_faulty(row: StreamRow) -> bool:
    """Whether it is stuck, changes hands, or lags without a reader."""
    if row.stuck or row.state in {"stalled", "revoking", "granting"}:
        return True
    return row.state in {"free", "revoked"} and row.lagging > 0


def stream_look(row: StreamRow) -> Look:
    """How its state looks."""
    if row.stuck or row.state == "stalled":
        return "bad"
    if is_stream_faulty(row):
        return "warn"
    return "good" if row.state == "granted" else "dim"


def _holder(row: StreamRow) -> str:
    return escaped(row.grant.client_id) if row.grant and row.grant.client_id else "-"


def _stall(row: StreamRow) -> str:
    stall = row.grant.stall if row.grant else ""
    return escaped(stall or (row.stuck.reason.sentence if row.stuck else "")) or "-"


def _lag(row: StreamRow) -> str:
    return "-" if row.lag is None else amounts.bounded(row.lag.lag, exact=row.lag.lag_exact)


def _stream_facts(row: StreamRow, pen: Pen) -> Sequence[tuple[str, str]]:
    grant, lag = row.grant, row.lag
    facts = [
        ("stream", escaped(row.stream)),
        ("state", row.state + (f": {_stall(row)}" if row.state in ("stalled", STUCK) else "")),
        ("held by", _holder(row)),
    ]
    if grant:
        facts += [
            ("since", amounts.age(grant.since_ms, pen.now_ms)),
            ("grant epoch", str(grant.grant_epoch)),
            ("pinned to", escaped(grant.pinned_to) or "-"),
        ]
    if lag:
        facts += [
            ("floor", str(lag.floor)),
            ("end", str(lag.end)),
            ("lag", _lag(row)),
            ("oldest", amounts.age(row.oldest_ms, pen.now_ms)),
        ]
    if row.sums:
        facts += [("out", str(row.sums.out)), ("waiting", str(row.sums.waiting))]
    if row.standing:
        reason = row.standing.reason
        facts += [
            ("floor stands", escaped(reason.sentence)),
            ("next", escaped(reason.command) or "-"),
        ]
    return facts  # fmt: skip


def _opened(place: Place, key: str, _row: StreamRow) -> Place:
    return Place("stream", group=place.group, stream=key)


STREAMS: Listing[StreamRow] = Listing(
    title="Streams",
    columns=(
        Column("stream", "STREAM", 14, lambda row: row.stream, grows=True, rises=True),
        Column("state", "STATE", 8, lambda row: row.state, look=stream_look, rises=True),
        Column("client", "HELD BY", 14, _holder, grows=True, rises=True),
        Column("lag", "LAG", 8, lambda row: row.lagging, lambda row, _pen: _lag(row), right=True,
            look=lambda row: "warn" if is_stream_faulty(row) and row.lagging else ""),
        Column("floor", "FLOOR", 8, lambda row: row.lag.floor if row.lag else None,
            lambda row, _pen: str(row.lag.floor) if row.lag else "-", right=True, rank=2),
        Column("end", "END", 8, lambda row: row.lag.end if row.lag else None,
            lambda row, _pen: str(row.lag.end) if row.lag else "-", right=True, rank=1),
        Column("oldest", "OLDEST", 7, lambda row: None if row.oldest_ms is None else -row.oldest_ms,
            lambda row, pen: amounts.age(row.oldest_ms, pen.now_ms), right=True),
        Column("for", "FOR", 7,
            lambda row: -row.grant.since_ms if row.grant and row.grant.since_ms else None,
            lambda row, pen: amounts.age(row.grant.since_ms if row.grant else None, pen.now_ms),
            right=True, rank=3),
        Column("epoch", "EPOCH", 5, lambda row: row.grant.grant_epoch if row.grant else None,
            lambda row, _pen: str(row.grant.grant_epoch) if row.grant else "-", right=True, rank=4),
        Column("stalled", "STALLED", 12, _stall, grows=True, rank=5, rises=True,
            look=lambda row: "bad" if stream_look(row) == "bad" else "dim"),
    ),
    rows=stream_rows,
    order=Ordering("lag"),
    opens=_opened,
    fault=is_stream_faulty,
    facts=_stream_facts,
    empty="the group reads no stream",
)  # fmt: skip


def _out_rows(scene: Scene) -> Mapping[str, StreamRow]:
    return {
        key: row
        for key, row in stream_rows(scene).items()
        if row.sums is not None and (row.sums.out or row.lagging)
    }


def _standing_text(row: StreamRow) -> str:
    standing = row.standing
    if standing is None:
        return "-"
    return f"{standing.offset}: {escaped(standing.reason.sentence)}"


OUT: Listing[StreamRow] = Listing(
    title="Out",
    columns=(
        Column("stream", "STREAM", 12, lambda row: row.stream, rises=True),
        Column("client", "HELD BY", 12, _holder, rises=True),
        Column("out", "OUT", 6, lambda row: row.sums.out if row.sums else 0,
            lambda row, _pen: amounts.count(row.sums.out) if row.sums else "-", right=True),
        Column("waiting", "WAITING", 7, lambda row: row.sums.waiting if row.sums else 0,
            lambda row, _pen: amounts.count(row.sums.waiting) if row.sums else "-", right=True),
        Column("oldest", "OLDEST", 7, lambda row: None if row.oldest_ms is None else -row.oldest_ms,
            lambda row, pen: amounts.age(row.oldest_ms, pen.now_ms), right=True),
        Column("why", "WHY THE FLOOR STANDS", 20, _standing_text, grows=True, rises=True),
    ),
    rows=_out_rows,
    order=Ordering("out"),
    opens=_opened,
    fault=is_stream_faulty,
    facts=_stream_facts,
    empty="nothing is out, and nothing waits",
)  # fmt: skip


class MemberRow(NamedTuple):
    """A member, and its streams."""

    member: "WatchedMember"
    lag: int
    stuck: bool
    """A stream that it holds is stuck."""


def _member_rows(scene: Scene) -> Mapping[str, MemberRow]:
    items, group = scene.picture.items, scene.place.group
    lags = items.lags.get(group, {})
    held: dict[str, int] = {}
    for stream, grant in items.grants.get(group, {}).items():
        if grant.client_id and stream in lags:
            held[grant.client_id] = held.get(grant.client_id, 0) + lags[stream].lag
    stuck = {row.grant.client_id for row in stream_rows(scene).values() if row.grant and row.stuck}
    return {
        key: MemberRow(member, held.get(member.client_id, 0), member.client_id in stuck)
        for key, member in items.members.get(group, {}).items()
    }


MEMBERS: Listing[MemberRow] = Listing(
    title="Members",
    columns=(
        Column("client", "CLIENT", 20, lambda row: row.member.client_id, grows=True, rises=True,
            look=lambda row: "bad" if row.stuck else ""),
        Column("streams", "STREAMS", 7, lambda row: row.member.streams,
            lambda row, _pen: str(row.member.streams) if row.member.streams else "standby",
            right=True),
        Column("lag", "LAG", 8, lambda row: row.lag, right=True),
        Column("connected", "HERE FOR", 8, lambda row: -row.member.connected_at_ms,
            lambda row, pen: amounts.age(row.member.connected_at_ms, pen.now_ms), right=True),
        Column("borrower", "BORROWER", 32, lambda row: row.member.borrower_id, rank=1, rises=True),
    ),
    rows=_member_rows,
    order=Ordering("client", descending=False),
    opens=lambda _place, _key, row: Place("session", name=row.member.client_id),
    fault=lambda row: row.stuck,
    empty="the group has no member",
)  # fmt: skip

"""One thing in full, as lines: an event, an operation, a session, a record.

Invariant: whatever is left out is marked as left out; long texts are wrapped.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dss_core.counted import counted
from dssctl.output.escape import escaped
from dssctl.output.folding import places
from dssctl.top.lists.catalogue import SESSIONS
from dssctl.top.lists.history import EVENTS, OPERATIONS
from dssctl.top.lists.listing import Column, Listing, Scene, facts_of
from dssctl.top.model.places import Ordering, Place
from dssctl.top.paint import amounts
from dssctl.top.paint.payloads import payload_lines
from dssctl.top.paint.spans import wrapped

if TYPE_CHECKING:
    from dss_client import Record

Facts = Sequence[tuple[str, str]]
LABEL_WIDTH = 16


class DetailRow(NamedTuple):
    """One line."""

    label: str
    text: str


def details(title: str, rows: "Any", empty: str) -> Listing[DetailRow]:  # noqa: ANN401
    """A page of lines."""
    return Listing(
        title=title,
        columns=(
            Column("what", "", LABEL_WIDTH, lambda row: row.label, lambda row, _pen: row.label,
                look=lambda _row: "dim", rises=True),
            Column("text", "", 20, lambda row: row.text, lambda row, _pen: row.text, grows=True,
                rises=True),
        ),
        rows=rows,
        order=Ordering("", descending=False),
        empty=empty,
    )  # fmt: skip


def numbered(rows: Sequence[DetailRow]) -> Mapping[str, DetailRow]:
    """Lines by their number."""
    return {f"{number:06}": row for number, row in enumerate(rows)}


def detail_rows(facts: Facts, width: int) -> list[DetailRow]:
    """Facts as rows, each in as many lines as it needs."""
    found: list[DetailRow] = []
    for label, text in facts:
        pieces = wrapped(text, max(20, width - LABEL_WIDTH - 2))
        found += [
            DetailRow(label if index == 0 else "", piece) for index, piece in enumerate(pieces)
        ]
    return found


def _rows_of(listing: Listing[Any], scene: Scene) -> Mapping[str, DetailRow]:
    name = scene.place.name
    row = listing.rows(scene._replace(place=Place(scene.place.noun))).get(name)
    if row is None:
        return {}
    return numbered(detail_rows(facts_of(listing, row, scene.pen), scene.width))


EVENT = details("Event", lambda scene: _rows_of(EVENTS, scene), "this event is not kept any more")
OPERATION = details(
    "Operation", lambda scene: _rows_of(OPERATIONS, scene), "this operation is not told any more"
)


FACTS = details(
    "Facts",
    lambda scene: numbered([DetailRow(*each) for each in scene.place.lines]),
    "nothing is known",
)


def _session_rows(scene: Scene) -> Mapping[str, DetailRow]:
    rows = list(_rows_of(SESSIONS, scene).values())
    client_id = scene.place.name
    for group, members in scene.picture.items.members.items():
        for member in members.values():
            if member.client_id == client_id:
                streams = counted(member.streams, "stream") if member.streams else "standing by"
                rows.append(DetailRow("reads", f"{escaped(group)}: {streams}"))
    return numbered(rows)


SESSION = details("Session", _session_rows, "the client has no session any more")


def _record_of(scene: Scene) -> "Record | None":
    records = scene.answer.records if scene.answer else ()
    return next((each for each in records if each.offset == scene.place.offset), None)


def _record_rows(scene: Scene) -> Mapping[str, DetailRow]:
    record = _record_of(scene)
    if record is None:
        return {}
    key, headers = record.key, record.headers
    facts = [
        ("record", f"{escaped(record.stream)} at {record.offset}"),
        ("subject", escaped(record.subject)),
        ("key", "none" if key is None else _decoded(key)),
        ("produced", amounts.moment(record.timestamp_us // 1_000)),
        *((f"header {escaped(name)}"[:LABEL_WIDTH], _decoded(value)) for name, value in headers),
    ]
    standings = scene.answer.standings if scene.answer else ()
    facts += [
        (f"for {scene.place.group.partition('@')[0]}"[:LABEL_WIDTH], escaped(each.reason.sentence))
        for each in standings
        if each.offset == record.offset
    ]
    rows = detail_rows(facts, scene.width)
    text_width = max(20, scene.width - LABEL_WIDTH - 2)
    shape, lines = payload_lines(record.payload, text_width)
    rows.append(DetailRow("payload", f"{amounts.size(len(record.payload))}, {shape}"))
    rows += [DetailRow("", each) for each in lines]
    return numbered(rows)


RECORD = details("Record", _record_rows, "this record is not there any more")


def _decoded(value: bytes) -> str:
    """Bytes as a text that is safe to print."""
    return escaped(value.decode(errors="backslashreplace"))


def _preview(record: "Record") -> str:
    """The part of a payload that fits a line."""
    return _decoded(record.payload[:_PREVIEW_BYTES])


_PREVIEW_BYTES = 400
"""The longest preview: more than the widest terminals show."""


def _key(record: "Record") -> str:
    return "-" if record.key is None else _decoded(record.key)


def _records(scene: Scene) -> "Mapping[str, Record]":
    records = scene.answer.records if scene.answer else ()
    return {str(each.offset): each for each in records}


RECORDS: "Listing[Record]" = Listing(
    title="Records",
    columns=(
        Column("offset", "OFFSET", 10, lambda each: each.offset,
            lambda each, _pen: str(each.offset), right=True, rises=True),
        Column("produced", "PRODUCED", 9, lambda each: each.timestamp_us,
            lambda each, pen: amounts.age(each.timestamp_us // 1_000, pen.now_ms), right=True,
            rises=True),
        Column("subject", "SUBJECT", 16, lambda each: each.subject,
            lambda each, _pen: escaped(each.subject), rank=1, rises=True),
        Column("key", "KEY", 12, _key, lambda each, _pen: _key(each), rises=True),
        Column("size", "SIZE", 7, lambda each: len(each.payload),
            lambda each, _pen: amounts.size(len(each.payload)), right=True, rank=2),
        Column("payload", "PAYLOAD", 20, _preview, lambda each, _pen: _preview(each), grows=True,
            rises=True),
    ),
    rows=_records,
    order=Ordering("offset", descending=False),
    opens=lambda place, _key, each: Place(
        "record", group=place.group, stream=place.stream, offset=each.offset
    ),
    empty="no record here",
)  # fmt: skip


def fact_lines(facts: Facts, width: int) -> list[DetailRow]:
    """Facts whose label is as wide as the longest one."""
    longest = max((places(label) for label, _ in facts), default=0) + 1
    rows: list[DetailRow] = []
    for label, text in facts:
        for index, piece in enumerate(wrapped(text, max(12, width - longest))):
            shown = label if index == 0 else ""
            rows.append(DetailRow(shown + " " * (longest - places(shown)), piece))
    return rows

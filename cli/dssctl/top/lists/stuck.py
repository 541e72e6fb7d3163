"""Groups and streams without progress, and why: what `dssctl groups stuck` prints."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dssctl.output.escape import escaped
from dssctl.top.lists.listing import Column, Listing, Pen, Scene
from dssctl.top.model.places import Ordering, Place
from dssctl.top.paint import amounts

if TYPE_CHECKING:
    from dss_client import Stuck


def _rows(scene: Scene) -> "Mapping[str, Stuck]":
    known = scene.picture.items.groups
    return {
        f"{each.group} {each.stream} {each.reason.code}": each
        for each in scene.picture.stuck
        if each.group in known
    }


def _still(row: "Stuck") -> str:
    return "-" if row.still_ms is None else amounts.span(row.still_ms)


def _facts(row: "Stuck", _pen: Pen) -> Sequence[tuple[str, str]]:
    return [
        ("group", escaped(row.group)),
        ("stream", escaped(row.stream) or "all of them"),
        ("why", escaped(row.reason.sentence)),
        ("next", escaped(row.reason.command) or "-"),
        ("lag", str(row.lag)),
        ("still for", _still(row)),
        ("held by", escaped(row.reason.client_id) or "-"),
    ]


def _opened(_place: Place, _key: str, row: "Stuck") -> Place:
    if row.stream:
        return Place("stream", group=row.group, stream=row.stream)
    return Place("group", group=row.group)


STUCK: "Listing[Stuck]" = Listing(
    title="Stuck",
    columns=(
        Column("group", "GROUP", 12, lambda row: row.group, rises=True),
        Column("stream", "STREAM", 12, lambda row: row.stream, rises=True),
        Column("lag", "LAG", 6, lambda row: row.lag, right=True),
        Column("still", "STILL", 7, lambda row: row.still_ms, lambda row, _pen: _still(row),
            right=True, rank=1),
        Column("why", "WHY", 24, lambda row: row.reason.sentence, grows=True, rises=True),
    ),
    rows=_rows,
    order=Ordering("lag"),
    opens=_opened,
    fault=lambda _row: True,
    facts=_facts,
    empty="all that has records moves",
)  # fmt: skip

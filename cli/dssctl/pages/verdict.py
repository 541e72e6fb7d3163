"""Verdicts: one word that a script can test, and one sentence that a person can act on."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dssctl.cells import HEALTH_STYLES
from dssctl.items import item_of
from dssctl.limits import PAGE_ROWS
from dssctl.output import Column, Item, Kind, Section, Value, note, show_one
from dssctl.settings import Format, Settings

if TYPE_CHECKING:
    from dss_client import Event, Operation
    from dss_client import Verdict as DaemonVerdict


@dataclass(frozen=True, slots=True)
class Verdict:
    """How something is."""

    health: str
    """``healthy``, ``attention`` or ``problem``."""
    sentence: str
    next: tuple[str, ...] = ()
    """Commands that help, or show more."""

    @property
    def fields(self) -> Item:
        """As the renderer takes it."""
        return {"health": self.health, "verdict": self.sentence, "next": list(self.next)}


HEALTH = Column("health", "HEALTH", styles=HEALTH_STYLES)
VERDICT = Column("verdict", "VERDICT")

EVENT_LINES = Kind(
    "EventLine",
    (
        Column("at", "AGE", right=True),
        Column("severity", "SEVERITY", styles={"error": "bold red", "warning": "yellow"}),
        Column("code", "CODE"),
        Column("sentence", "WHAT HAPPENED"),
    ),
    lambda item: str(item["number"]),
)
OPERATION_LINES = Kind(
    "OperationLine",
    (
        Column("number", "NUMBER", right=True),
        Column("applied_at", "AGE", right=True),
        Column(
            "state",
            "STATE",
            styles={"done": "green", "running": "yellow", "failed": "bold red"},
        ),
        Column("summary", "WHAT"),
        Column("principal", "WHO"),
    ),
    lambda item: str(item["number"]),
)


def event_lines(events: "Sequence[Event]") -> list[Item]:
    """Events, the newest last."""
    return [item_of("EventLine", each) for each in events]


def operation_lines(operations: "Sequence[Operation]") -> list[Item]:
    """Operations, the newest first."""
    return [item_of("OperationLine", each) for each in operations]


def worst_of(found: "Sequence[DaemonVerdict]") -> Verdict | None:
    """The worst that the daemon finds, the first of several; None where nothing is wrong."""
    levels = ("problem", "attention")
    worst = min(found, key=lambda each: (*levels, each.level).index(each.level), default=None)
    if worst is None or worst.level not in levels:
        return None
    return Verdict(worst.level, worst.sentence, worst.commands)


def show_page(
    settings: Settings, kind: Kind, page: Kind, item: Item, sections: Sequence[Section]
) -> None:
    """Print a page for people, without empty sections; or all of it, of `kind`, for programs."""
    if settings.format not in {Format.TABLE, Format.WIDE}:
        show_one(settings, kind, item, sections)
        return
    filled = [section for section in sections if item[section.field]]
    rows = {each.field: _shortened(settings, item[each.field], each.field) for each in filled}
    show_one(settings, page, {**item, **rows}, filled)


def named(text: str) -> str:
    """A name as a shell takes it."""
    return shlex.quote(text)


def _shortened(settings: Settings, rows: Value, what: str) -> Value:
    """Rows, the most urgent first; a table shows only the first of them, and a note counts them."""
    assert isinstance(rows, Sequence)
    if settings.format is not Format.TABLE or len(rows) <= PAGE_ROWS:
        return rows
    note(settings, f"{PAGE_ROWS} of {len(rows)} {what} shown; -o wide shows all")
    return rows[:PAGE_ROWS]

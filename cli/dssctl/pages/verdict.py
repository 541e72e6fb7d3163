"""Verdicts: one word that a script can test, and one sentence that a person can act on."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_core.counted import counted
from dssctl.cells import HEALTH_STYLES
from dssctl.items import item_of
from dssctl.limits import PAGE_ROWS, RECENT_ERROR_MS
from dssctl.output import Column, Item, Kind, Section, Value, note, show_one
from dssctl.settings import Format, Settings

if TYPE_CHECKING:
    from dss_client import Event, Operation, Stuck


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
    return [item_of("EventLine", event) for event in events]


def operation_lines(operations: "Sequence[Operation]") -> list[Item]:
    """Operations, the newest first."""
    return [item_of("OperationLine", operation) for operation in operations]


def last_error(events: "Sequence[Event]", now_us: int) -> "Event | None":
    """The newest event of severity error that was told lately; None where there was none."""
    since_ms = now_us // 1_000 - RECENT_ERROR_MS
    bad = (each for each in reversed(events) if each.severity == "error")
    return next((each for each in bad if each.last_at_ms >= since_ms), None)


def stuck_verdict(stuck: "Sequence[Stuck]", *, with_group: bool = False) -> Verdict:
    """Of what does not move, as it is asked of the daemon."""
    first = stuck[0]
    where = " ".join(filter(None, (first.group if with_group else "", first.stream)))
    more = len(stuck) - 1
    others = f" So {'stands' if more == 1 else 'stand'} {counted(more, 'more stream')}."
    told = f"{where}: {first.reason.sentence}" if where else first.reason.sentence
    commands = dict.fromkeys(filter(None, (each.reason.command for each in stuck)))
    level = "problem" if any(each.level == "problem" for each in stuck) else "attention"
    return Verdict(level, told + (others if more else ""), tuple(commands))


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
    """Rows that are sorted by need, the first of them only in a table; a note tells of the rest."""
    assert isinstance(rows, Sequence)
    if settings.format is not Format.TABLE or len(rows) <= PAGE_ROWS:
        return rows
    note(settings, f"{PAGE_ROWS} of {len(rows)} {what} shown; -o wide shows all")
    return rows[:PAGE_ROWS]

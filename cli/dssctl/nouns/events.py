"""Events, and calls that are told as events: what each field means, and how a table shows it."""

from dssctl.fields.model import Fields, anything, moment, number, text
from dssctl.output import Column, Item, Kind

EVENT: Fields = (
    number("number", "Rises with each event."),
    moment("at", "When it happened first."),
    text("severity", "info, warning or error."),
    text("code", "What kind of thing happened, for example stream.stalled."),
    text("subject", "The stream, group, topic or client that it happened to."),
    text("sentence", "What happened."),
    anything("fields", "The facts, by name."),
    number("times", "How often it happened; repeats count in one event."),
    moment("last_at", "When it happened last."),
)

CALL: Fields = (
    number("number", "The number of its event."),
    moment("at", "When it was called."),
    text("principal", "Who called.", optional=True),
    text("outcome", "done, refused with a code, or unknown."),
    text("subject", "What it was about."),
    text("method", "The called method.", optional=True),
    text("program", "The caller's program, on this machine.", optional=True),
    text("pid", "The caller's process, on this machine.", optional=True),
    text("user", "The caller's user, as the caller says.", optional=True),
    text("origin", "Where the call came from.", optional=True),
    text("reason", "Why, as the caller said.", optional=True),
    text("sentence", "What was asked."),
)


def _times(item: Item, _now_us: int) -> str:
    return f"x{item['times']}" if item["times"] != 1 else "-"


EVENT_KIND = Kind(
    "Event",
    (
        Column("number", "NUMBER", right=True, width=6),
        Column("at", "AGE", right=True, width=6),
        Column(
            "severity",
            "SEVERITY",
            width=8,
            styles={"error": "bold red", "warning": "yellow", "info": "green"},
        ),
        Column("code", "CODE", width=16),
        Column("subject", "SUBJECT", width=18),
        Column("times", "TIMES", right=True, width=5, cell=_times),
        Column("last_at", "LAST", right=True, width=6, wide=True),
        Column("fields", "FIELDS", width=24, wide=True),
        Column("sentence", "WHAT HAPPENED"),
    ),
    lambda item: str(item["number"]),
)


CALL_KIND = Kind(
    "Call",
    (
        Column("number", "NUMBER", right=True),
        Column("at", "AGE", right=True),
        Column("principal", "PRINCIPAL"),
        Column("outcome", "OUTCOME", styles={"done": "green", "unknown": "yellow"}),
        Column("subject", "SUBJECT"),
        Column("method", "METHOD", wide=True),
        Column("program", "PROGRAM", wide=True),
        Column("pid", "PID", right=True, wide=True),
        Column("user", "USER", wide=True),
        Column("origin", "FROM", wide=True),
        Column("sentence", "WHAT WAS ASKED"),
    ),
    lambda item: str(item["number"]),
)

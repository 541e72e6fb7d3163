"""The one table of screens: their lists, panels and names.

A new screen needs a row here, a listing in `dssctl.top.lists`, and, if it is watched, a field of
the picture; nothing else has to know of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dssctl.nouns.queues import FINGERPRINT_DIGITS
from dssctl.output.escape import escaped
from dssctl.top.lists import queues
from dssctl.top.lists.catalogue import SESSIONS, TOPIC_STREAMS, TOPICS
from dssctl.top.lists.details import EVENT, FACTS, OPERATION, RECORD, RECORDS, SESSION
from dssctl.top.lists.groups import GROUPS, LEADERS
from dssctl.top.lists.history import EVENTS, OPERATIONS
from dssctl.top.lists.jobs import CHUNKS, JOB_FACTS, JOBS, LOG
from dssctl.top.lists.listing import Listing
from dssctl.top.lists.schedules import SCHEDULES
from dssctl.top.lists.streams import MEMBERS, OUT, STREAMS
from dssctl.top.lists.stuck import STUCK
from dssctl.top.model.answers import Question
from dssctl.top.model.places import Place
from dssctl.top.panels import panels
from dssctl.top.panels.blocks import Panel
from dssctl.top.stage.command_lines import (
    consume_line,
    dead_line,
    events_line,
    of_group,
    of_name,
    operations_line,
    plain,
    record_line,
)
from dssctl.top.stage.help import ACTIONS, HELP


@dataclass(frozen=True, slots=True)
class Tab:
    """One of the lists of a screen."""

    listing: Listing[Any]
    command: Callable[[Place], str]
    """The command line that prints the same."""
    question: Question | None = None


@dataclass(frozen=True, slots=True)
class Strip:
    """A panel above or below a list."""

    panel: Panel
    small: int
    """Lines on a small terminal; 0: it is not shown there."""
    large: int


@dataclass(frozen=True, slots=True)
class Screen:
    """A screen."""

    noun: str
    title: str
    tabs: tuple[Tab, ...]
    names: tuple[str, ...] = ()
    """Other names that open it after a colon, beside its noun."""
    above: Strip | None = None
    below: Strip | None = None
    beside: bool = True
    """On a large terminal the facts of the chosen row stand beside the list."""
    argument: Literal["", "group", "name"] = ""
    """The part of its place that a word after its name fills."""


_ABOVE_GROUP = Strip(panels.group, 7, 14)

_TABLE = (
    Screen(
        "pulse", "Pulse", (Tab(GROUPS, plain("groups ls --sort lag")),), ("top", "daemon"),
        above=Strip(panels.pulse, 5, 9), below=Strip(panels.news_below, 5, 10),
    ),
    Screen("groups", "Groups", (Tab(GROUPS, plain("groups ls")),), ("g", "lag")),
    Screen(
        "group", "Group",
        (
            Tab(STREAMS, of_group("grants ls -g")),
            Tab(MEMBERS, of_group("groups describe")),
            Tab(OUT, of_group("groups verify"), "out"),
            Tab(EVENTS, events_line),
            Tab(OPERATIONS, operations_line),
            Tab(queues.ERRORS, of_group("dlq errors"), "dead"),
        ),
        above=_ABOVE_GROUP, argument="group",
    ),
    Screen(
        "dead", "Dead letters",
        (
            Tab(queues.ERRORS, of_group("dlq errors"), "dead"),
            Tab(queues.KEYS, of_group("dlq keys"), "dead"),
            Tab(queues.RECORDS, of_group("dlq ls"), "dead-records"),
            Tab(queues.WAITING, of_group("rq ls"), "waiting"),
        ),
        ("dlq", "rq"), argument="group",
    ),
    Screen("dead-keys", "Keys", (Tab(queues.KEYS, dead_line, "dead"),)),
    Screen("dead-records", "Records", (Tab(queues.RECORDS, dead_line, "dead-records"),)),
    Screen(
        "dead-letter", "Dead letter", (Tab(queues.LETTER, dead_line, "dead-letter"),),
        beside=False,
    ),
    Screen(
        "stream", "Stream", (Tab(RECORDS, consume_line, "stream"),),
        above=Strip(panels.stream, 7, 10),
    ),
    Screen("record", "Record", (Tab(RECORD, record_line, "record"),), beside=False),
    Screen("topics", "Topics", (Tab(TOPICS, plain("topics ls")),), ("t",)),
    Screen(
        "topic", "Topic",
        (Tab(TOPIC_STREAMS, of_name("topics describe"), "topic"),),
        above=Strip(panels.topic, 5, 8), argument="name",
    ),
    Screen("sessions", "Sessions", (Tab(SESSIONS, plain("sessions ls")),), ("clients", "s")),
    Screen(
        "session", "Session", (Tab(SESSION, plain("sessions ls")),), ("client",),
        beside=False, argument="name",
    ),
    Screen("schedules", "Schedules", (Tab(SCHEDULES, plain("schedules ls")),), ("cron",)),
    Screen("jobs", "Jobs", (Tab(JOBS, plain("jobs ls")),), ("j", "bulk")),
    Screen(
        "job", "Job",
        (
            Tab(CHUNKS, of_name("jobs describe --chunks"), "job"),
            Tab(LOG, of_name("jobs logs"), "job"),
            Tab(JOB_FACTS, of_name("jobs describe"), "job"),
        ),
        above=Strip(panels.job, 7, 14), below=Strip(panels.log_below, 0, 8), argument="name",
    ),
    Screen("stuck", "Stuck", (Tab(STUCK, plain("groups stuck")),)),
    Screen("leaders", "Leaders", (Tab(LEADERS, plain("leaders ls")),), ("l",)),
    Screen("operations", "Operations", (Tab(OPERATIONS, operations_line),), ("ops", "o")),
    Screen(
        "operation", "Operation",
        (Tab(OPERATION, of_name("ops show")),), ("op",),
        beside=False, argument="name",
    ),
    Screen("events", "Events", (Tab(EVENTS, events_line),), ("e",)),
    Screen("event", "Event", (Tab(EVENT, events_line),), beside=False, argument="name"),
    Screen("facts", "Facts", (Tab(FACTS, plain("--help")),), beside=False),
    Screen("help", "Help", (Tab(HELP, plain("top --help")),), ("?",), beside=False),
    Screen("actions", "Actions", (Tab(ACTIONS, plain("--help")),), beside=False),
)  # fmt: skip

SCREENS: Mapping[str, Screen] = {screen.noun: screen for screen in _TABLE}
"""The screens, by noun."""

NAMES: Mapping[str, str] = {
    name: screen.noun for screen in _TABLE for name in (screen.noun, *screen.names)
}
"""The names that may be typed after a colon, and the noun of each."""


def screen_of(place: Place) -> Screen:
    """The screen that shows a place."""
    return SCREENS[place.noun]


def title_of(place: Place) -> str:
    """The title of a place in the trail."""
    if place.noun == "group":
        return place.group.partition("@")[0]
    if place.noun == "stream":
        return place.stream
    if place.noun == "record":
        return str(place.offset)
    if place.noun == "dead-keys":
        return escaped(place.name[:FINGERPRINT_DIGITS]) or "Keys"
    if place.noun == "dead-records":
        return "none" if place.key is None else escaped(place.key.decode(errors="backslashreplace"))
    return place.name or SCREENS[place.noun].title

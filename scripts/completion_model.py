"""What completes each word of a `dssctl` command line: the model behind the three shell scripts.

Invariant: it is made of the command tree alone and of the table below, and every row of the table
is about something that the tree has; a test says which is not.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dss_core.errors import REGISTRY
from dssctl.command_tree import CommandNode, Parameter
from dssctl.config import KEYS
from dssctl.config.document import COLOURS
from dssctl.nouns.operations import STATES
from dssctl.settings import Colour, Format, TimeStyle
from dssctl.tree import COMMANDS

NOTHING = "-"
"""A value that only the user knows."""
FILES = "/"
LIVE = "@"
"""Before the kind of name that `dssctl __complete` is asked for."""
WORDS = "="
"""Before words with blanks between them."""

LIVE_VALUES = {
    "GROUP": "groups",
    "TOPIC": "topics",
    "STREAM": "streams",
    "BORROWER": "borrowers",
    "CLIENT": "sessions",
    "NUMBER": "ops",
    "CONTEXT": "contexts",
    "SCHEDULE": "schedules",
    "TASK": "tasks",
    "JOB": "jobs",
}
"""By what stands for the value in the help."""
FILE_VALUES = ("FILE", "PLAN", "DIR")
FLAGS = {
    "--group": LIVE + "groups",
    "--topic": LIVE + "topics",
    "--color": WORDS + " ".join(Colour),
    "--output": WORDS + " ".join(Format),
    "--default-output": WORDS + " ".join(Format),
    "--time": WORDS + " ".join(TimeStyle),
    "--context": LIVE + "contexts",
    "--colour": WORDS + " ".join(COLOURS),
    "--theme": WORDS + "dark light",
    "--overlap": WORDS + "skip queue allow",
    "--durability": WORDS + "sync os",
    "--router": WORDS + "block range",
    "--protocol": WORDS + "borrow lease",
    "--on-damage": WORDS + "pass stall",
    "--state": WORDS + " ".join(STATES),
    "--severity": WORDS + "info warning error",
}
"""By option, where need be with what stands for its value."""
ARGUMENTS = {
    "CODE": WORDS + " ".join(sorted(REGISTRY)),
    "KIND": WORDS + "groups members grants lags events operations sessions",
    "KEY": WORDS + " ".join(KEYS),
    "PAGE": WORDS + " ".join(("dssctl", *COMMANDS, "dssd", "dssd.toml", "errors.7")),
    "SCREEN": WORDS + "groups topics sessions leaders schedules operations events group",
}
"""Of arguments whose values are few and fixed, by what stands for them."""
NAMED_ANEW = ("create", "add")
"""Verbs whose first argument is a name that must not be there yet."""

EVERYWHERE = "Global options"
SHARED = ("How it is changed", "What is listed")
"""Sections of the help that many commands have alike."""

ABOUT_CHARS_MAX = 72
"""Of a description: a line of a terminal, beside the word."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word that may come, and a few words about it."""

    text: str
    about: str


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag, and what completes its value; None where it has none."""

    text: str
    about: str
    source: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where on the tree a command line is."""

    path: str
    """``groups pause``."""
    children: tuple[Word, ...]
    flags: tuple[Flag, ...]
    """Its own."""
    shared: tuple[str, ...]
    """The sections of which it has all that there is."""
    arguments: tuple[str, ...]
    """What completes each."""
    repeats: bool
    """The last argument may come again."""


def places(tree: CommandNode) -> Iterator[Place]:
    """Every place of the tree, the root first."""
    return _places(tree, {title: tree.fullest(title) for title in SHARED})


def _places(node: CommandNode, fullest: dict[str, tuple[Parameter, ...]]) -> Iterator[Place]:
    shared = tuple(title for title in SHARED if node.takes_all_of(fullest[title]))
    own = [each for each in node.options if each.section not in (*shared, EVERYWHERE)]
    yield Place(
        path=" ".join(node.words),
        children=tuple(Word(each.words[-1], about(each.summary)) for each in shown(node.children)),
        flags=tuple(flag for each in own for flag in flags_of(each)),
        shared=shared,
        arguments=tuple(source_of(each, node.words) or NOTHING for each in node.arguments),
        repeats=any(each.repeated for each in node.arguments),
    )
    for child in node.children:
        yield from _places(child, fullest)


def shared_flags(tree: CommandNode) -> dict[str, tuple[Flag, ...]]:
    """The flags of each section that many commands share, and of the one that all have."""
    return {
        title: tuple(flag for each in tree.fullest(title) for flag in flags_of(each))
        for title in (EVERYWHERE, *SHARED)
    }


def flags_of(option: Parameter) -> Iterator[Flag]:
    """All spellings of an option."""
    if option.hidden:
        return
    source = source_of(option, ())
    for text in (*option.flags, *option.off_flags):
        yield Flag(text, about(option.help), source)


def source_of(parameter: Parameter, words: tuple[str, ...]) -> str | None:
    """What completes the value of a parameter; None of a flag."""
    if parameter.value is None:
        return None
    if parameter.choices:
        return WORDS + " ".join(parameter.choices)
    if parameter.is_argument:
        anew = words[-1:] and words[-1] in NAMED_ANEW
        return NOTHING if anew else ARGUMENTS.get(parameter.value) or _by_value(parameter.value)
    stated = (FLAGS[key] for key in flag_keys(parameter) if key in FLAGS)
    return next(stated, _by_value(parameter.value))


def _by_value(value: str) -> str:
    if value in LIVE_VALUES:
        return LIVE + LIVE_VALUES[value]
    return FILES if value in FILE_VALUES else NOTHING


def flag_keys(parameter: Parameter) -> Iterator[str]:
    """How the table may name an option."""
    for flag in parameter.flags:
        yield f"{flag} {parameter.value}"
        yield flag


def shown(nodes: tuple[CommandNode, ...]) -> Iterator[CommandNode]:
    """Those that help shows too."""
    return (each for each in nodes if not each.hidden)


def about(text: str) -> str:
    """The beginning of a help text: a clause, or as much as fits."""
    clause = text.split("; ")[0].split(". ")[0].rstrip(".")
    if len(clause) <= ABOUT_CHARS_MAX:
        return clause
    return clause[: clause.rindex(" ", 0, ABOUT_CHARS_MAX)].rstrip(",:") + " ..."

"""How a command line says what somebody may do, and until when."""

import shlex
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.errors import IllegalArgument
from dss_core.times import parse_span_ms

if TYPE_CHECKING:
    from dss_client.access import Permission

Roles = Annotated[
    list[str] | None,
    typer.Option("--role", metavar="ROLE", help="read, produce, consume, operate, admin; repeat."),
]
TopicFilters = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", metavar="FILTER", help="For these subjects; '#' for all; may be repeated."
    ),
]
GroupPatterns = Annotated[
    list[str] | None,
    typer.Option(
        "--group", metavar="PATTERN", help="For these groups; '*' for all; may be repeated."
    ),
]
Permissions = Annotated[
    list[str] | None,
    typer.Option(
        "--permission",
        metavar="TEXT",
        help="One more, as 'ROLE FILTER... @GROUP...'; may be repeated.",
    ),
]
Expires = Annotated[
    str | None, typer.Option("--expires", metavar="SPAN", help="How long it is valid, such as 90d.")
]


def permissions_of(
    roles: Sequence[str] | None,
    topics: Sequence[str] | None,
    groups: Sequence[str] | None,
    more: Sequence[str] | None,
) -> "list[Permission]":
    """What was said: each role for the same topics and groups, and what is said by itself.

    Raises:
        IllegalArgument: nothing was.
    """
    from dss_client.access import Permission

    said = [
        Permission(role, tuple(topics or ()), tuple(groups or ()))
        if role != "admin"
        else Permission(role)
        for role in roles or ()
    ]
    said += map(_permission, more or ())
    if not said:
        rule = "say what they may: --role consume --topic 'orders/#' --group 'billing*' for one"
        raise IllegalArgument(argument="permissions", rule=rule)
    return said


def _permission(text: str) -> "Permission":
    from dss_client.access import Permission

    try:
        role, *rest = shlex.split(text) or [""]
    except ValueError as unclosed:
        raise IllegalArgument(argument=f"permission {text!r}", rule=str(unclosed)) from unclosed
    topics = tuple(each for each in rest if not each.startswith("@"))
    groups = tuple(each.removeprefix("@") for each in rest if each.startswith("@"))
    return Permission(role, topics, groups)


def end_ms(expires: str | None) -> int | None:
    """The end of a validity of this length, by this machine's clock; None: it never ends.

    Raises:
        IllegalSpan: it is no span.
    """
    return None if expires is None else time.time_ns() // 1_000_000 + parse_span_ms(expires)

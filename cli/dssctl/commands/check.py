"""``dssctl check``: a measurement against bounds, for monitoring systems."""

import sys
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dss_core.errors import DssError, GroupNotFound, IllegalArgument
from dssctl.checks.bounds import (
    AGE,
    FREE_BYTES,
    FREE_SHARE,
    LEFT,
    MEMBERS,
    RECORDS,
    STREAMS,
    Bounds,
    Unit,
    bounds_of,
    presence,
)
from dssctl.checks.result import Measured, Result, nagios, prometheus
from dssctl.connection import ask
from dssctl.global_options import KeyOption
from dssctl.output import Column, Kind, show_one
from dssctl.output.escape import escaped
from dssctl.settings import Format, Settings
from dssctl.tree import Command, noun, settings_of

if TYPE_CHECKING:
    from dss_client import Client, Group

app = noun("check")

CHECK_KIND = Kind(
    "Check",
    (
        Column("check", "CHECK"),
        Column("status", "STATUS"),
        Column("exit_code", "EXIT-CODE"),
        Column("text", "FOUND"),
    ),
    lambda item: str(item["check"]),
)
_STYLE = "dssctl.check.style"
_NAGIOS, _PROMETHEUS = "nagios", "prometheus"


class _StyleOption(KeyOption):
    """The global option, with two more formats."""

    def _set(self, ctx: Any, value: Any) -> None:  # noqa: ANN401 -- Typer's private types
        if value in (_NAGIOS, _PROMETHEUS):
            ctx.find_root().meta[_STYLE] = value
        else:
            super()._set(ctx, value)


class Checking(Command):
    """A check: its result may be formatted for Nagios or for Prometheus."""

    def __init__(self, name: str | None, **attributes: Any) -> None:  # noqa: ANN401 -- Typer's own
        super().__init__(name, **attributes)
        shown = _StyleOption(
            ["-o", "--output"],
            "output",
            metavar="FORMAT",
            help="nagios (default); prometheus; json, jsonl, yaml, csv, name.",
        )
        self.params = [shown if "--output" in each.opts else each for each in self.params]


Groups = Annotated[
    list[str] | None,
    typer.Option("-g", "--group", metavar="GROUP", help="NAME or NAME@FILTER; all where absent."),
]


Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[GROUP...]", help="NAME or NAME@FILTER; all where absent."),
]


def _option(code: int, bound: str) -> Any:  # noqa: ANN401 -- Typer's own
    return typer.Option(metavar="BOUND", help=f"Exit with {code} {bound}.")


@app.command(cls=Checking)
def lag(
    context: typer.Context,
    warn: Annotated[str | None, _option(1, "from so many on: 1k")] = None,
    crit: Annotated[str | None, _option(2, "from so many on: 50k")] = None,
    group: Groups = None,
) -> None:
    """Check how many records groups have not acknowledged."""
    _check_groups(
        context, "lag", _required(context, RECORDS, warn, crit), group, lambda each, _: each.lag
    )


@app.command(cls=Checking)
def oldest(
    context: typer.Context,
    warn: Annotated[str | None, _option(1, "from this age on: 5m")] = None,
    crit: Annotated[str | None, _option(2, "from this age on: 1h")] = None,
    group: Groups = None,
) -> None:
    """Check how old the oldest record is that groups have not acknowledged."""

    def age_ms(each: "Group", now_us: int) -> float:
        oldest_us = each.oldest_unacked_us
        return 0 if oldest_us is None else max(now_us - oldest_us, 0) / 1_000

    _check_groups(context, "oldest", _required(context, AGE, warn, crit), group, age_ms)


@app.command(cls=Checking)
def members(
    context: typer.Context,
    warn: Annotated[str | None, _option(1, "where there are fewer: 3")] = None,
    crit: Annotated[str | None, _option(2, "where there are fewer: 1")] = None,
    group: Groups = None,
) -> None:
    """Check that groups have enough members."""
    bounds = _required(context, MEMBERS, warn, crit)
    _check_groups(context, "members", bounds, group, lambda each, _: each.borrowers)


@app.command("dead-letters", cls=Checking)
def dead_letters(
    context: typer.Context,
    names: Names = None,
    warn: Annotated[str | None, _option(1, "from so many on: 1")] = None,
    crit: Annotated[str | None, _option(2, "from so many on: 100")] = None,
    group: Groups = None,
) -> None:
    """Check how many records are among the dead letters of groups."""
    bounds = _required(context, RECORDS, warn, crit)
    wanted = [*(names or ()), *(group or ())]
    _check_groups(context, "dead-letters", bounds, wanted, lambda each, _: each.dead)


@app.command(cls=Checking)
def retries(
    context: typer.Context,
    names: Names = None,
    warn: Annotated[str | None, _option(1, "from so many on: 1k")] = None,
    crit: Annotated[str | None, _option(2, "from so many on: 50k")] = None,
    group: Groups = None,
) -> None:
    """Check how many records failed and wait for their next attempt."""
    bounds = _required(context, RECORDS, warn, crit)
    wanted = [*(names or ()), *(group or ())]
    _check_groups(context, "retries", bounds, wanted, lambda each, _: each.retrying)


@app.command(cls=Checking)
def stuck(
    context: typer.Context,
    warn: Annotated[str | None, _option(1, "where so many do not move: 1")] = None,
    crit: Annotated[str, _option(2, "where so many do not move: 1, as where absent")] = "1",
    group: Groups = None,
) -> None:
    """Check that no group and no stream stands still though it has records."""
    bounds = bounds_of(STREAMS, warn, crit)

    async def look(client: "Client") -> Result:
        names: list[str | None] = list(group) if group else [None]
        found = [each for name in names for each in await client.groups.stuck(name)]
        # As for the alert DssGroupStuck: whoever paused it knows about it.
        found = [each for each in found if each.level == "problem"]
        note = f"{found[0].group}: {found[0].reason.sentence}" if found else ""
        return Result("stuck", (Measured("", len(found), bounds, note),))

    _check(context, "stuck", look)


@app.command(cls=Checking)
def disk(
    context: typer.Context,
    warn: Annotated[str, _option(1, "where less is free: 10%, as where absent, or 20G")] = "10%",
    crit: Annotated[str, _option(2, "where less is free: 3%, as where absent, or 5G")] = "3%",
) -> None:
    """Check how much of the daemon's disk is free."""
    as_share = warn.endswith("%")
    if as_share is not crit.endswith("%"):
        raise typer.BadParameter("--warn and --crit are both shares or both amounts.", ctx=context)
    bounds = bounds_of(FREE_SHARE if as_share else FREE_BYTES, warn, crit)

    async def look(client: "Client") -> Result:
        status = await client.daemon.status()
        free = status.disk_free_bytes
        value = free / max(status.disk_size_bytes, 1) if as_share else free
        return Result("disk", (Measured(f"free of {status.data_dir}", value, bounds),))

    _check(context, "disk", look)


@app.command(cls=Checking)
def daemon(
    context: typer.Context,
    warn: Annotated[str | None, _option(1, "where an answer takes so long: 100ms")] = None,
    crit: Annotated[str | None, _option(2, "where an answer takes so long: 1s")] = None,
) -> None:
    """Check that the daemon serves, and how fast it answers; unreachable is critical."""
    bounds = bounds_of(AGE, warn, crit)

    async def look(client: "Client") -> Result:
        began = time.perf_counter()
        status = await client.daemon.status()
        took_ms = (time.perf_counter() - began) * 1_000
        answer = Measured("answers in", took_ms, bounds)
        if status.state == "serving":
            return Result("daemon", (answer,))
        # This one thing must be there, and must be in order.
        serving = Bounds(presence(status.state), crit=1)
        return Result("daemon", (answer, Measured("", 0, serving, status.state_reason)))

    _check(context, "daemon", look, absent_is_critical=True)


@app.command(cls=Checking)
def certificate(
    context: typer.Context,
    warn: Annotated[str, _option(1, "where it has less left: 14d, as where absent")] = "14d",
    crit: Annotated[str, _option(2, "where it has less left: 2d, as where absent")] = "2d",
) -> None:
    """Check how long the certificate lasts that the daemon serves TLS with."""
    bounds = bounds_of(LEFT, warn, crit)

    async def look(client: "Client") -> Result:
        status = await client.daemon.status()
        if not status.certificate:
            raise IllegalArgument(argument="check", rule="this daemon has no TLS")
        left_ms = (status.certificate_ends_ms or 0) - status.now_us / 1_000
        left = Measured("left", max(left_ms, 0), bounds)
        if not status.certificate_problem:
            return Result("certificate", (left,))
        serving = Bounds(presence("not served"), crit=1)
        return Result("certificate", (left, Measured("", 0, serving, status.certificate_problem)))

    _check(context, "certificate", look)


def _required(context: typer.Context, unit: Unit, warn: str | None, crit: str | None) -> Bounds:
    if warn is None and crit is None:
        raise typer.BadParameter("name a bound: --warn, --crit or both.", ctx=context)
    return bounds_of(unit, warn, crit)


def _check_groups(
    context: typer.Context,
    check: str,
    bounds: Bounds,
    wanted: list[str] | None,
    value: "Callable[[Group, int], float]",
) -> None:
    now_us = settings_of(context).clock_us()

    async def look(client: "Client") -> Result:
        groups = await client.groups.list()
        named = {f"{group.name}@{group.filter}": group for group in groups}
        for name in wanted or ():
            if not any(name in (full, group.name) for full, group in named.items()):
                raise GroupNotFound(group=name)
        measured = (
            Measured(full, value(group, now_us), bounds)
            for full, group in named.items()
            if not wanted or full in wanted or group.name in wanted
        )
        return Result(check, tuple(measured))

    _check(context, check, look)


def _check(
    context: typer.Context,
    check: str,
    look: "Callable[[Client], Awaitable[Result]]",
    *,
    absent_is_critical: bool = False,
) -> None:
    """Ask, print, and exit with the status."""
    settings = settings_of(context)
    try:
        result = ask(settings, look)
    except DssError as failure:
        result = _failed(check, failure, absent_is_critical=absent_is_critical)
    _print(settings, context.find_root().meta.get(_STYLE), result)
    raise typer.Exit(result.status)


def _failed(check: str, failure: DssError, *, absent_is_critical: bool) -> Result:
    text = f"{check}: {failure.code}: {failure.message}"
    if not absent_is_critical:
        return Result(check, (), text)
    there = Bounds(presence("no answer"), crit=1)
    return Result(check, (Measured("", 0, there, f"{failure.code}: {failure.message}"),))


def _print(settings: Settings, style: object, result: Result) -> None:
    if style == _PROMETHEUS:
        for line in prometheus(result):
            sys.stdout.write(f"{line}\n")
    elif style == _NAGIOS or settings.format in {Format.TABLE, Format.WIDE}:
        sys.stdout.write(f"{escaped(nagios(result))}\n")
    else:
        show_one(settings, CHECK_KIND, result.item)

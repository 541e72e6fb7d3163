"""``dssctl consume``: records on stdout, as a reader or as a member of a group."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dss_core.errors import GroupNamedTwice, OutputUnwritable, WrongUsage
from dss_core.filters import SubscriptionFilter
from dssctl.advice import note_unmatched, outages_noted
from dssctl.changing import Writing
from dssctl.confirm import confirm_name_if_protected
from dssctl.connection import connected, require_daemon
from dssctl.output import Column, Kind, growing, note, note_condition
from dssctl.output.writer import Growing
from dssctl.pipe_reader import PipeReader
from dssctl.records.items import bytes_columns, identity, record_item, shown_headers, text_column
from dssctl.settings import Settings
from dssctl.tree import settings_of, verb_alone

if TYPE_CHECKING:
    from dss_client import DeliveredRecord, Record

app = verb_alone("consume")


_PLACE = (
    Column("stream", "STREAM", width=14),
    Column("offset", "OFFSET", right=True, width=8),
    text_column("subject", width=18),
    *bytes_columns("key", width=12),
)
_DELIVERY = (
    Column("attempt", "ATTEMPT", right=True, width=7, wide=True),
    Column(
        "redelivered",
        "REDELIVERED",
        width=11,
        cell=lambda item, _now_us: "yes" if item["redelivered"] else "-",
    ),
)
_CONTENT = (
    Column("timestamp", "AGE", right=True, width=27, wide=True),
    Column("headers", "HEADERS", width=12, wide=True, cell=shown_headers),
    *bytes_columns("payload"),
)


_GROUP_PREFIXES = ("$share/", "$shared/", "$shares/", "$queue/")


RECORD_KIND = Kind("Record", (*_PLACE, *_CONTENT), identity)
DELIVERED_KIND = Kind("Record", (*_PLACE, *_DELIVERY, *_CONTENT), identity)


class _Consuming(Writing):
    """A member acknowledges, so the group moves on; a plain read changes nothing."""

    kinds = (DELIVERED_KIND,)

    def changes(self, ctx: Any, _settings: Settings) -> bool:  # noqa: ANN401 -- Typer's private types
        """Whether a group is named, in either way."""
        topic_filter = ctx.params["topic_filter"]
        return ctx.params["group"] is not None or (topic_filter or "").startswith("$")


@app.command(cls=_Consuming)
def consume(
    context: typer.Context,
    topic_filter: Annotated[
        str | None, typer.Argument(metavar="[FILTER]", help="Subjects: orders/#, orders/+/eu, ...")
    ] = None,
    number: Annotated[
        int | None, typer.Option("-n", "--number", min=1, help="Stop after so many records.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="earliest, now, -15m, a date, RFC 3339, @unix, =OFFSET. "
            "earliest where absent; for a new group: now.",
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option("-g", "--group", metavar="NAME", help="Join this group; ack what is printed."),
    ] = None,
    stream: Annotated[
        str | None,
        typer.Option(metavar="STREAM", help="Read this one only, orders/0/3; FILTER is optional."),
    ] = None,
    client_id: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The member's client id, instead of USER-HOST-PID-dssctl-RANDOM."
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="At the end, wait for more, or stop.")
    ] = True,
) -> None:
    """Print records as they come, until Ctrl-C.

    Without --group it is a plain read: nobody else notices. With it, this is a member that shares
    the group's records with the others, and a record is acknowledged once it is printed; in a pipe,
    once its reader has taken it.
    """
    settings = settings_of(context)
    if topic_filter is None and (stream is None or group is not None):
        raise typer.BadParameter("name a FILTER, or for a plain read a --stream.", ctx=context)
    shared = None if topic_filter is None else _shared_filter(topic_filter, group)
    if shared is not None and stream is not None:
        raise typer.BadParameter("--stream is for a plain read, without a group.", ctx=context)
    if shared is None and client_id is not None:
        raise typer.BadParameter("--client-id is for a member of a group.", ctx=context)
    if topic_filter is not None and shared is not None and not follow:
        reason = "--no-follow is for a plain read; a group has no end. Use -n."
        if topic_filter.startswith(_GROUP_PREFIXES):
            named = SubscriptionFilter.parse(topic_filter)
            reason += f" ({topic_filter} is the filter {named.filter} with --group {named.group}.)"
        raise WrongUsage(reason=reason, command=context.command_path)
    consumption = _Consumption(settings, number)
    if shared is not None:
        name = group or SubscriptionFilter.parse(shared).group or shared
        confirm_name_if_protected(settings, f"Consuming in the group {name}", name)
        consumption.run_as_member(shared, start, client_id)
    else:
        consumption.run_as_reader(topic_filter, start, stream, follow=follow)


def _shared_filter(topic_filter: str, group: str | None) -> str | None:
    """The subscription of a member; None for a plain read."""
    if group is not None:
        if topic_filter.startswith(_GROUP_PREFIXES):
            rest = SubscriptionFilter.parse(topic_filter).filter
            raise GroupNamedTwice(filter=topic_filter, group=group, rest=rest)
        return f"$share/{group}/{topic_filter}"
    return topic_filter if topic_filter.startswith("$") else None


class _Consumption:
    """One run; records that were printed are acknowledged however it ends."""

    def __init__(self, settings: Settings, number: int | None) -> None:
        self._settings = settings
        self._number = number
        self._end: BaseException | None = None
        self._terminated = False

    def run_as_reader(
        self, topic_filter: str | None, start: str | None, stream: str | None, *, follow: bool
    ) -> None:
        """Print a range of the log, or its tail.

        Raises:
            KeyboardInterrupt: it was interrupted.
            BrokenPipeError: nobody reads stdout any more.
        """
        with growing(self._settings, RECORD_KIND) as listing, outages_noted(self._settings):
            asyncio.run(self._read(listing, topic_filter, start, stream, follow=follow))
            self._raise_end()
        self._end_as_told()

    def run_as_member(self, shared_filter: str, start: str | None, client_id: str | None) -> None:
        """Print and acknowledge the share of one member.

        Raises:
            KeyboardInterrupt: it was interrupted.
            BrokenPipeError: nobody reads stdout any more.
        """
        with growing(self._settings, DELIVERED_KIND) as listing, outages_noted(self._settings):
            asyncio.run(self._share(listing, shared_filter, start, client_id))
            self._raise_end()
        self._end_as_told()

    def _raise_end(self) -> None:
        if self._terminated:
            return
        if isinstance(self._end, asyncio.CancelledError):
            raise KeyboardInterrupt
        if self._end is not None:
            raise self._end

    def _end_as_told(self) -> None:
        """End by the signal that ended the printing, so that its sender sees no failure."""
        if self._terminated:
            sys.stdout.flush()
            signal.raise_signal(signal.SIGTERM)

    async def _read(
        self,
        listing: Growing,
        topic_filter: str | None,
        start: str | None,
        stream: str | None,
        *,
        follow: bool,
    ) -> None:
        async with connected(self._settings) as client:
            await require_daemon(client, self._settings)
            if topic_filter is not None:
                await note_unmatched(client, self._settings, topic_filter)
            records = client.read(
                topic_filter,
                start=start,
                stream=stream,
                follow=follow,
                records_max=self._number,
                on_damage=partial(note_condition, self._settings),
            )
            await self._until_the_end(self._print(records, listing, stream if follow else None))

    async def _print(
        self, records: "AsyncIterable[Record]", listing: Growing, followed: str | None
    ) -> None:
        printed = 0
        async for record in records:
            listing.add(record_item(record))
            printed += 1
        if followed is not None and printed != self._number:
            # Else it would look as if the daemon were gone.
            note(self._settings, f"{followed} takes no more records: that was its end")

    async def _share(
        self, listing: Growing, shared_filter: str, start: str | None, client_id: str | None
    ) -> None:
        async with connected(self._settings, client_id) as client:
            await require_daemon(client, self._settings)
            await note_unmatched(client, self._settings, shared_filter)
            async with client.subscribe(shared_filter, start=start) as subscription:
                if subscription.declared and subscription.options.shared:
                    begin = f"starting {start or 'now'}"
                    note(self._settings, f"created group {subscription.group}, {begin}")
                await self._until_the_end(_print_and_ack(subscription, listing, self._number))

    async def _until_the_end(self, printing: Coroutine[object, object, None]) -> None:
        """Print; on Ctrl-C, SIGTERM or a closed output leave in order, so that acks are still
        sent."""
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None

        def terminated() -> None:
            loop.remove_signal_handler(signal.SIGTERM)  # a second one ends the process at once
            self._terminated = True
            task.cancel()

        loop.add_signal_handler(signal.SIGTERM, terminated)
        try:
            await printing
        except asyncio.CancelledError as interruption:
            self._end = interruption
            task.uncancel()
        except (BrokenPipeError, OutputUnwritable) as closed:
            self._end = closed
        finally:
            loop.remove_signal_handler(signal.SIGTERM)


async def _print_and_ack(
    records: "AsyncIterable[DeliveredRecord]", listing: Growing, number: int | None
) -> None:
    printed = 0
    reader = PipeReader(sys.stdout.fileno())
    async for record in records:
        listing.add(
            {**record_item(record), "redelivered": record.redelivered, "attempt": record.attempt}
        )
        await reader.taken()
        await record.ack()
        printed += 1
        if printed == number:
            return

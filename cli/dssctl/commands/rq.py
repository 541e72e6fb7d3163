"""``dssctl rq``: records that failed and wait for their next attempt."""

import typer

from dssctl.arguments import GroupName
from dssctl.changing import Changing, Removing, carry_out
from dssctl.listing import listing
from dssctl.nouns.queues import ERROR_KIND, RETRY_KIND
from dssctl.queue_choices import (
    AllOf,
    FromTime,
    OfError,
    OfKey,
    OfMember,
    OfOrigin,
    Place,
    ToTime,
    chosen,
    has_member,
)
from dssctl.queue_lists import RULES, Chosen, list_entries, list_errors
from dssctl.tree import noun

app = noun("rq")


@app.command("ls", cls=listing(RETRY_KIND, RULES))
def list_retries(
    context: typer.Context,
    group: GroupName,
    error: OfError = "",
    key: OfKey = None,
    origin: OfOrigin = "",
) -> None:
    """List what waits in a group's retry queues: when it is due, and why it failed."""
    list_entries(context, Chosen(group, "retry", error, key, origin))


@app.command(cls=listing(ERROR_KIND))
def errors(context: typer.Context, group: GroupName) -> None:
    """Count what waits in a group's retry queues by error, the most frequent first."""
    list_errors(context, group, "retry")


@app.command("retry-now", cls=Changing)
def retry_now(
    context: typer.Context,
    group: GroupName,
    place: Place = None,
    error: OfError = "",
    key: OfKey = None,
    origin: OfOrigin = "",
    member: OfMember = "",
    since: FromTime = None,
    until: ToTime = None,
) -> None:
    """Let records that wait come at once. All where nothing is named."""
    from dss_client.changes import RetryNow

    named = chosen(context, place, error, key, origin, member, since, until)
    carry_out(context, RetryNow(group, **named))


@app.command(cls=Removing)
def skip(
    context: typer.Context,
    group: GroupName,
    place: Place = None,
    error: OfError = "",
    key: OfKey = None,
    origin: OfOrigin = "",
    member: OfMember = "",
    since: FromTime = None,
    until: ToTime = None,
    everything: AllOf = False,
) -> None:
    """Pass over records that wait: nobody gets them, and what follows them is next."""
    from dss_client.changes import SkipRetries

    named = chosen(context, place, error, key, origin, member, since, until)
    change = SkipRetries(group, **named, everything=everything)
    carry_out(context, change, has_end=has_member)


@app.command(cls=Changing)
def dead(
    context: typer.Context,
    group: GroupName,
    place: Place = None,
    error: OfError = "",
    key: OfKey = None,
    origin: OfOrigin = "",
    member: OfMember = "",
    since: FromTime = None,
    until: ToTime = None,
    everything: AllOf = False,
) -> None:
    """Make records that wait dead letters, without the attempts that are left."""
    from dss_client.changes import BuryRetries

    named = chosen(context, place, error, key, origin, member, since, until)
    change = BuryRetries(group, **named, everything=everything)
    carry_out(context, change, has_end=has_member)

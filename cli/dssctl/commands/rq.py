"""``dssctl rq``: records that failed and wait for their next attempt."""

import typer

from dssctl.arguments import GroupName
from dssctl.changing import Changing, Removing, carry_out
from dssctl.listing import listing
from dssctl.nouns.queues import ERROR_KIND, KEY_KIND, PEEK_KIND, QUEUE_PAGE_KIND, RETRY_KIND
from dssctl.queue_choices import (
    ENTRIES_PEEKED,
    AllOf,
    Attempts,
    Exact,
    FromTime,
    OfError,
    OfKey,
    OfMember,
    OfOrigin,
    Peeked,
    PeekedAs,
    Place,
    ToTime,
    chosen,
    has_member,
)
from dssctl.queue_lists import RULES, chosen_entries, list_entries, list_errors, list_keys
from dssctl.queue_pages import describe_queue, peek_at
from dssctl.records.payloads import Decoding
from dssctl.tree import noun, settings_of, showing

app = noun("rq")


@app.command("ls", cls=listing(RETRY_KIND, RULES))
def list_retries(
    context: typer.Context,
    group: GroupName,
    error: OfError = "",
    key: OfKey = None,
    origin: OfOrigin = "",
    member: OfMember = "",
    since: FromTime = None,
    until: ToTime = None,
    attempts: Attempts = 0,
) -> None:
    """List what waits in a group's retry queues: when it is due, and why it failed."""
    named = chosen(context, None, error, key, origin, member, since, until)
    list_entries(context, chosen_entries(group, "retry", named, key, attempts))


@app.command(cls=listing(ERROR_KIND))
def errors(context: typer.Context, group: GroupName, exact: Exact = False) -> None:
    """Count what waits in a group's retry queues by error, the most frequent first."""
    list_errors(context, group, "retry", exact=exact)


@app.command(cls=listing(KEY_KIND))
def keys(
    context: typer.Context, group: GroupName, error: OfError = "", exact: Exact = False
) -> None:
    """Count what waits in a group's retry queues by key, the most frequent first."""
    list_keys(context, group, "retry", error, exact=exact)


@app.command(cls=showing(QUEUE_PAGE_KIND))
def describe(context: typer.Context, group: GroupName) -> None:
    """Show the retry queues of a group on a page: by error, by key, and what to do next."""
    describe_queue(settings_of(context), group, "retry")


@app.command(cls=showing(PEEK_KIND))
def peek(
    context: typer.Context,
    group: GroupName,
    place: Place = None,
    error: OfError = "",
    key: OfKey = None,
    origin: OfOrigin = "",
    member: OfMember = "",
    since: FromTime = None,
    until: ToTime = None,
    attempts: Attempts = 0,
    number: Peeked = ENTRIES_PEEKED,
    decoding: PeekedAs = Decoding.AUTO,
) -> None:
    """Show records that wait whole: what each is, and why it failed."""
    named = chosen(context, place, error, key, origin, member, since, until)
    wanted = chosen_entries(group, "retry", named, key, attempts)
    peek_at(settings_of(context), wanted, number, decoding)


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
    """Deliver waiting records at once. All where nothing is named."""
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
    """Make waiting records dead letters, without their remaining attempts."""
    from dss_client.changes import BuryRetries

    named = chosen(context, place, error, key, origin, member, since, until)
    change = BuryRetries(group, **named, everything=everything)
    carry_out(context, change, has_end=has_member)

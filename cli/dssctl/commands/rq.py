"""``dssctl rq``: records that failed and wait for their next attempt."""

import typer

from dssctl.arguments import GroupName
from dssctl.listing import listing
from dssctl.nouns.queues import ERROR_KIND, RETRY_KIND
from dssctl.queue_lists import RULES, Chosen, OfError, OfKey, OfOrigin, list_entries, list_errors
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

"""``dssctl borrowers``: members of groups."""

from typing import Annotated

import typer

from dss_core.times import parse_span_ms
from dssctl.arguments import GroupName
from dssctl.changing import Changing, carry_out
from dssctl.tree import noun

app = noun("borrowers")


@app.command(cls=Changing)
def evict(
    context: typer.Context,
    group: GroupName,
    borrower: Annotated[
        str, typer.Argument(metavar="BORROWER", help="Its id, or the id of its client.")
    ],
    grace: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="How long it may go on with what it has out, 30s."),
    ] = None,
    ban: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="Keep the client out of the group so long, 1h."),
    ] = None,
) -> None:
    """End a member's subscription; others get its streams."""
    from dss_client.changes import Evict

    grace_ms = None if grace is None else parse_span_ms(grace)
    ban_ms = None if ban is None else parse_span_ms(ban)
    carry_out(context, Evict(group, borrower, grace_ms, ban_ms))

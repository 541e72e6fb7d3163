"""``dssctl records``: single records."""

from typing import Annotated

import typer

from dssctl.arguments import GroupName, StreamName
from dssctl.changing import Changing, carry_out
from dssctl.tree import noun

app = noun("records")


@app.command(cls=Changing)
def skip(
    context: typer.Context,
    group: GroupName,
    stream: StreamName,
    offset: Annotated[int, typer.Argument(metavar="OFFSET", min=0, help="Of the first record.")],
    count: Annotated[int, typer.Option(metavar="N", min=1, help="So many from there on.")] = 1,
) -> None:
    """Acknowledge records for a group by hand: the way past one that nobody can handle."""
    from dss_client.changes import SkipRecords

    carry_out(context, SkipRecords(group, stream, offset, count))

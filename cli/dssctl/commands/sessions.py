"""``dssctl sessions``: what the daemon keeps of clients."""

from typing import Annotated

import typer

from dssctl.changing import Changing, carry_out
from dssctl.tree import noun

app = noun("sessions")


@app.command(cls=Changing)
def close(
    context: typer.Context,
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="The id of its client.")],
) -> None:
    """End the session of a client, connected or not; what it held goes to others."""
    from dss_client.changes import CloseSession

    carry_out(context, CloseSession(client))

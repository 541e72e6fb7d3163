"""``dssctl tokens``: callers from elsewhere that show a token."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.errors import IllegalArgument
from dss_core.times import parse_span_ms
from dssctl.arguments import IfExists
from dssctl.changing import Writing
from dssctl.confirm import confirm, confirm_name_if_protected
from dssctl.connection import ask
from dssctl.listing import list_items, listing
from dssctl.nouns.principals import NEW_TOKEN_KIND, PRINCIPAL_KIND, principal_item
from dssctl.output import Instant, Item, note, show_one
from dssctl.permission_options import (
    Expires,
    GroupPatterns,
    Permissions,
    Roles,
    TopicFilters,
    end_ms,
    permissions_of,
)
from dssctl.removal import REMOVAL_KIND, show_removal
from dssctl.selection import ListRules, Named, Wanted
from dssctl.settings import Format, Settings
from dssctl.tree import noun, settings_of, showing

if TYPE_CHECKING:
    from dss_client import Client
    from dss_client.access import NewToken

app = noun("tokens")

KIND = "token:"

Name = Annotated[str, typer.Argument(metavar="NAME", help="Whose token it is.")]
To = Annotated[
    Path | None,
    typer.Option("--to", metavar="FILE", help="Write it there, for its owner's eyes only."),
]

RULES = ListRules(named=Named("[NAME]"))


@app.command("ls", cls=listing(PRINCIPAL_KIND, RULES))
def list_tokens(context: typer.Context) -> None:
    """List the principals with a token, and their permissions."""

    async def holders(client: "Client", _wanted: Wanted) -> list[Item]:
        found = await client.access.list()
        return [principal_item(each) for each in found if each.name.startswith(KIND)]

    list_items(context, holders)


@app.command(cls=showing(NEW_TOKEN_KIND, command=Writing))
def add(
    context: typer.Context,
    name: Name,
    role: Roles = None,
    topic: TopicFilters = None,
    group: GroupPatterns = None,
    permission: Permissions = None,
    expires: Expires = None,
    to: To = None,
) -> None:
    """Make a token for somebody. It is shown once: the daemon keeps only its SHA-256."""
    settings = settings_of(context)
    permissions = permissions_of(role, topic, group, permission)
    ends_at_ms = end_ms(expires)
    _require_new(to)
    confirm_name_if_protected(settings, f"Adding the token {name}", name)

    async def added(client: "Client") -> "tuple[NewToken, bool]":
        made = await client.access.add_token(name, permissions, expires_at_ms=ends_at_ms)
        listening = (await client.daemon.status()).listening
        return made, any(each.startswith("dss://") for each in listening)

    made, has_tls = ask(settings, added)
    _show(settings, made, to)
    if not has_tls:
        how = "dssd serve --listen 0.0.0.0:7233,tls,clients=tokens --tls-cert FILE --tls-key FILE"
        note(settings, f"no listener takes tokens from other hosts yet: {how}")


@app.command(cls=showing(NEW_TOKEN_KIND, command=Writing))
def rotate(
    context: typer.Context,
    name: Name,
    both_for: Annotated[
        str, typer.Option("--both-for", metavar="SPAN", help="Accept the older one this long.")
    ] = "1h",
    to: To = None,
) -> None:
    """Make a new token for a principal that has one; for a while both are accepted."""
    settings = settings_of(context)
    both_for_ms = parse_span_ms(both_for)
    _require_new(to)
    confirm_name_if_protected(settings, f"Rotating the token {name}", name)
    _show(
        settings,
        ask(settings, lambda client: client.access.rotate_token(name, both_for_ms=both_for_ms)),
        to,
    )


@app.command("rm", cls=showing(REMOVAL_KIND, command=Writing))
def remove(
    context: typer.Context,
    name: Name,
    if_exists: IfExists = False,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
) -> None:
    """Remove a token: it is refused from now on, and its calls end within a second."""
    settings = settings_of(context)
    confirm(settings, f"Removing the token {name}", name, confirmed=yes)
    removed = ask(settings, lambda client: client.access.remove(KIND + name, if_exists=if_exists))
    show_removal(settings, KIND + name, removed=removed)


def _require_new(to: Path | None) -> None:
    """Before a token is made, make sure that its file can be created.

    Raises:
        IllegalArgument: the file exists, or its folder does not.
    """
    if to is not None and (to.exists() or not to.absolute().parent.is_dir()):
        raise IllegalArgument(argument=f"--to {to}", rule="a new file in a folder that is there")


def _show(settings: Settings, made: "NewToken", to: Path | None) -> None:
    if to is not None:
        with os.fdopen(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{made.token}\n")
    elif settings.format is Format.TABLE:
        sys.stdout.write(f"{made.token}\n")
        note(settings, "it is shown once; keep it in a file of mode 600, and say --token-file FILE")
        return
    ends = made.principal.expires_at_ms
    item: Item = {
        "name": made.principal.name,
        "token": made.token if to is None else None,
        "file": None if to is None else str(to.absolute()),
        "expires_at": None if ends is None else Instant.of_ms(ends),
    }
    show_one(settings, NEW_TOKEN_KIND, item)

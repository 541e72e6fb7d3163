"""``dssctl principals``: callers from elsewhere, and their permissions."""

from typing import TYPE_CHECKING, Annotated

import typer

from dssctl.arguments import IfExists
from dssctl.changing import Writing
from dssctl.confirm import confirm as agreed
from dssctl.confirm import confirm_name_if_protected
from dssctl.connection import ask
from dssctl.listing import list_items, listing
from dssctl.nouns.principals import PRINCIPAL_KIND, principal_item
from dssctl.output import Item, show_list, show_one
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
from dssctl.tree import noun, settings_of, showing

if TYPE_CHECKING:
    from dss_client import Client

app = noun("principals")

Name = Annotated[
    str, typer.Argument(metavar="KIND:NAME", help="token:NAME or cert:NAME; see principals ls.")
]

RULES = ListRules(named=Named("[NAME]"))


@app.command("ls", cls=listing(PRINCIPAL_KIND, RULES))
def list_principals(context: typer.Context) -> None:
    """List the principals with a token or a certificate, and their permissions."""

    async def principals(client: "Client", _wanted: Wanted) -> list[Item]:
        return [principal_item(each) for each in await client.access.list()]

    list_items(context, principals)


@app.command(cls=showing(PRINCIPAL_KIND, command=Writing))
def add(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="As the certificate says it: its CN, or its URI.")
    ],
    role: Roles = None,
    topic: TopicFilters = None,
    group: GroupPatterns = None,
    permission: Permissions = None,
    expires: Expires = None,
) -> None:
    """Admit the holder of a certificate of this name; for a token: dssctl tokens add."""
    settings = settings_of(context)
    permissions = permissions_of(role, topic, group, permission)
    ends_at_ms = end_ms(expires)
    own = name.removeprefix("cert:")
    confirm_name_if_protected(settings, f"Adding the certificate {own}", own)
    added = ask(
        settings,
        lambda client: client.access.add_certificate(own, permissions, expires_at_ms=ends_at_ms),
    )
    show_one(settings, PRINCIPAL_KIND, principal_item(added))


@app.command(cls=showing(PRINCIPAL_KIND, command=Writing))
def allow(
    context: typer.Context,
    name: Name,
    role: Roles = None,
    topic: TopicFilters = None,
    group: GroupPatterns = None,
    permission: Permissions = None,
) -> None:
    """Give a principal more permissions; it keeps those that it has, and its expiry."""
    settings = settings_of(context)
    permissions = permissions_of(role, topic, group, permission)
    confirm_name_if_protected(settings, f"Allowing {name} more", name)
    allowed = ask(settings, lambda client: client.access.allow(name, permissions))
    show_one(settings, PRINCIPAL_KIND, principal_item(allowed))


@app.command(cls=showing(PRINCIPAL_KIND, command=Writing))
def edit(
    context: typer.Context,
    name: Name,
    role: Roles = None,
    topic: TopicFilters = None,
    group: GroupPatterns = None,
    permission: Permissions = None,
    expires: Expires = None,
) -> None:
    """Replace all permissions and the expiry of a principal; its running calls are cut off."""
    settings = settings_of(context)
    permissions = permissions_of(role, topic, group, permission)
    ends_at_ms = end_ms(expires)
    confirm_name_if_protected(settings, f"Editing {name}", name)
    edited = ask(
        settings, lambda client: client.access.edit(name, permissions, expires_at_ms=ends_at_ms)
    )
    show_one(settings, PRINCIPAL_KIND, principal_item(edited))


@app.command(cls=showing(PRINCIPAL_KIND, command=Writing))
def confirm(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KIND:NAME]...", help="Who may call again; see principals ls."),
    ] = None,
    everybody: Annotated[
        bool, typer.Option("--all", help="All that were known when the backup was taken.")
    ] = False,
) -> None:
    """Confirm principals that a restore from a backup suspended: they may call again."""
    settings = settings_of(context)
    if bool(names) == everybody:
        raise typer.BadParameter("Name who may call again, or say --all.")
    confirm_name_if_protected(settings, "Confirming", "all" if names is None else " ".join(names))
    confirmed = ask(settings, lambda client: client.access.confirm(names or ()))
    show_list(settings, PRINCIPAL_KIND, map(principal_item, confirmed))


@app.command(cls=showing(PRINCIPAL_KIND, command=Writing))
def deny(
    context: typer.Context,
    name: Name,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
) -> None:
    """Deny a principal everything until it is edited; its calls end within a second."""
    settings = settings_of(context)
    agreed(settings, f"Denying {name} everything", name, confirmed=yes)
    denied = ask(settings, lambda client: client.access.edit(name, ()))
    show_one(settings, PRINCIPAL_KIND, principal_item(denied))


@app.command("rm", cls=showing(REMOVAL_KIND, command=Writing))
def remove(
    context: typer.Context,
    name: Name,
    if_exists: IfExists = False,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
) -> None:
    """Remove a principal: it is refused from now on, and its calls end within a second."""
    settings = settings_of(context)
    agreed(settings, f"Removing {name}", name, confirmed=yes)
    removed = ask(settings, lambda client: client.access.remove(name, if_exists=if_exists))
    show_removal(settings, name, removed=removed)

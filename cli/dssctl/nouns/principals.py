"""Who may call from elsewhere, and new tokens: what each field means, and how a table shows it.

Invariant: a token is printed only by the command that makes it.
"""

from typing import TYPE_CHECKING

from dssctl.fields.model import Fields, moment, text, texts, truth
from dssctl.items import item_of
from dssctl.output import Column, Item, Kind

if TYPE_CHECKING:
    from dss_client.access import Permission, Principal

PRINCIPAL: Fields = (
    text("name", "token:NAME or cert:NAME."),
    texts("permissions", "Permissions: a role, topic filters, and @ before patterns of groups."),
    truth("suspended", "Whether a restore suspended it: it is refused until it is confirmed."),
    moment("expires_at", "When it expires.", optional=True),
    moment("older_token_until", "Until when the previous token is also accepted.", optional=True),
    moment("created_at", "When it was created."),
    text("created_by", "Who created it."),
)

NEW_TOKEN: Fields = (
    text("name", "Its principal: token:NAME."),
    text("token", "The token; it is shown once. Null if it went to a file.", optional=True),
    text("file", "Where it was written.", optional=True),
    moment("expires_at", "When it expires.", optional=True),
)


def _permissions(item: Item, _now_us: int) -> str:
    said = item["permissions"]
    assert isinstance(said, list)
    return "; ".join(map(str, said))


PRINCIPAL_KIND = Kind(
    "Principal",
    (
        Column("name", "NAME"),
        Column("permissions", "MAY", cell=_permissions),
        Column("suspended", "SUSPENDED", styles={"yes": "yellow"}),
        Column("expires_at", "EXPIRES", right=True),
        Column("created_at", "CREATED", right=True, wide=True),
        Column("created_by", "BY", wide=True),
        Column("older_token_until", "OLDER-TOKEN-UNTIL", right=True, wide=True),
    ),
    lambda item: str(item["name"]),
)

NEW_TOKEN_KIND = Kind(
    "NewToken",
    (
        Column("name", "NAME"),
        Column("token", "TOKEN"),
        Column("file", "FILE"),
        Column("expires_at", "EXPIRES", right=True),
    ),
    lambda item: str(item["name"]),
)


def principal_item(principal: "Principal") -> Item:
    """A principal as an item."""
    said = [permission_text(each) for each in principal.permissions]
    return item_of("Principal", principal, permissions=said)


def permission_text(permission: "Permission") -> str:
    """A permission as `--permission` takes it."""
    groups = (f"@{pattern}" for pattern in permission.groups)
    return " ".join([permission.role, *permission.topics, *groups])

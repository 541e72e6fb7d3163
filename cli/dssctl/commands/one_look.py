"""One look at all of a daemon, in text: what ``dssctl top`` prints without a terminal."""

from typing import TYPE_CHECKING

from dssctl.commands.daemon import status_item
from dssctl.connection import ask
from dssctl.items import item_of
from dssctl.limits import EVENTS_BEFORE_FOLLOWING, OPERATIONS_LISTED
from dssctl.nouns.events import EVENT_KIND
from dssctl.nouns.groups import GROUP_KIND, group_item
from dssctl.nouns.operations import OPERATION_KIND, operation_item
from dssctl.output import Item, Kind, Section, show_one
from dssctl.settings import Settings

if TYPE_CHECKING:
    from dss_client import Client


def print_look(settings: Settings, kind: Kind, *, private: bool) -> None:
    """Print the look."""
    item = ask(settings, lambda client: _look(client, private=private))
    sections = [
        Section("groups", GROUP_KIND),
        Section("operations", OPERATION_KIND),
        Section("events", EVENT_KIND),
    ]
    show_one(settings, kind, item, [each for each in sections if item[each.field]])


async def _look(client: "Client", *, private: bool) -> Item:
    status = await client.daemon.status()
    groups = await client.groups.list(all=private, sort="lag")
    operations = await client.operations.list(latest=OPERATIONS_LISTED)
    events = (await client.events.list(latest=EVENTS_BEFORE_FOLLOWING)).events
    return {
        **status_item(status),
        "groups": [group_item(each) for each in groups],
        "operations": [operation_item(each) for each in operations],
        "events": [item_of("Event", each) for each in events],
    }

"""The page of a group."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_core.counted import bytes_text, counted
from dss_core.times import text_of_span
from dssctl.cells import is_unmeasured
from dssctl.items import item_of
from dssctl.limits import PAGE_EVENTS, PAGE_OPERATIONS
from dssctl.nouns.answers import STUCK_KIND
from dssctl.nouns.groups import drained
from dssctl.output import Column, Instant, Item, Kind, Section
from dssctl.pages.verdict import (
    EVENT_LINES,
    HEALTH,
    OPERATION_LINES,
    VERDICT,
    Verdict,
    event_lines,
    operation_lines,
    show_page,
)
from dssctl.settings import Format, Settings

if TYPE_CHECKING:
    from dss_client import Client, Event, Group, GroupDescription, Operation


@dataclass(frozen=True, slots=True)
class GroupLook:
    """All that the page is made of."""

    description: "GroupDescription"
    events: "tuple[Event, ...]"
    operations: "tuple[Operation, ...]"


async def group_look(client: "Client", group: str) -> GroupLook:
    """Ask for it, at once.

    Raises:
        GroupNotFound, GroupAmbiguous: there is none, or several have the name.
    """
    description = await client.groups.describe(group)
    name = name_of(description.group)
    events, operations = await asyncio.gather(
        client.events.list(subject=name, severity="warning", latest=PAGE_EVENTS),
        client.operations.list(subject=name, latest=PAGE_OPERATIONS),
    )
    return GroupLook(description, events.events, operations)


def name_of(group: "Group") -> str:
    """NAME@FILTER."""
    return f"{group.name}@{group.filter}"


def _cell_doing(item: Item, _now_us: int) -> str:
    members, standby = item["borrowers"], item["standby"]
    what = "shard" if item["allocation"] == "shard" else "stream"
    waiting = f", {standby} of them without a {what}" if standby else ""
    they = f"{counted(int(str(members)), 'member')}{waiting}"
    over = f", {item['finished']} of them finished" if item["finished"] else ""
    return f"{item['state']}: {they}, {counted(int(str(item['streams'])), 'stream')}{over}"


def _cell_lag(item: Item, now_us: int) -> str:
    oldest, drain = item["oldest_unacked_at"], drained(item, now_us)
    age = f", the oldest {oldest.age(now_us)} old" if isinstance(oldest, Instant) else ""
    done = "" if drain in {"-", "never"} else f", drained in {drain}"
    bound = "" if item["lag_exact"] else "<="
    return f"{bound}{item['lag']}{age}{done}"


def _cell_rates(item: Item, now_us: int) -> str:
    if is_unmeasured(item, now_us):
        return "not measured yet"
    minute, five = item["arrivals_1m"], item["arrivals_5m"]
    acks, acks_five = item["acks_1m"], item["acks_5m"]
    return (
        f"{minute:.1f} arrive and {acks:.1f} are acknowledged a second; "
        f"over five minutes {five:.1f} and {acks_five:.1f}"
    )


def _cell_done(item: Item, _now_us: int) -> str:
    kinds = ["acked", "filtered", "lost", "damaged", "moved"]
    kinds += ["retried"] if item["retried"] or item["max_deliver"] else []
    return ", ".join(f"{kind} {item[kind]}" for kind in kinds)


def _cell_queues(item: Item, _now_us: int) -> str:
    if not item["max_deliver"]:
        return "none: a record that fails comes again for ever"
    return f"{item['retrying']} retrying, {item['dead']} dead"


def _cell_retries(item: Item, _now_us: int) -> str:
    if not item["max_deliver"]:
        return "-"
    size = item["queue_bytes"]
    assert isinstance(size, int)
    return (
        f"dead after {item['max_deliver']} failures, back-off {item['backoff']}, at most "
        f"{item['queue_records']} records or {bytes_text(size)} of a stream in its queues"
    )


_ON_DEAD_LETTER = {
    "block": "a dead letter blocks its key",
    "skip": "a key goes on behind a dead letter",
}


def _cell_order(item: Item, _now_us: int) -> str:
    if not item["ordered"]:
        return "not kept where a record fails: later ones of its key may come before it"
    keyless = "are dead letters" if item["keyless"] == "dead" else "come without an order"
    what = _ON_DEAD_LETTER[str(item["on_dead_letter"])]
    count = item["shards"] or "as many shards as its topic has for a base"
    cut = f"in {count} shards" if item["shards"] else f"in {count}"
    shared = cut if item["allocation"] == "shard" else "stream by stream"
    return (
        f"of keys, also through retries: {what}; records without a key {keyless}; shared out "
        f"{shared}"
    )


def _cell_settings(item: Item, _now_us: int) -> str:
    wait_ms = item["ack_wait_ms"]
    unused_ms = item["unused_ms"]
    assert isinstance(wait_ms, int)
    assert isinstance(unused_ms, int)
    ends = f", goes {text_of_span(unused_ms)} after its last client" if unused_ms else ""
    return (
        f"start {item['start']}, ack wait {text_of_span(wait_ms)}, protocol {item['protocol']}, "
        f"on damage {item['on_damage']}, revision {item['revision']}{ends}"
    )


def _cell_leader(item: Item, now_us: int) -> str:
    since = item["leader_since"]
    if not isinstance(since, Instant):
        return "none: nobody is a member"
    return f"for {since.age(now_us)}, epoch {item['leader_epoch']}"


GROUP_PAGE_KIND = Kind(
    "Group",
    (
        HEALTH,
        VERDICT,
        Column("name", "GROUP", cell=lambda item, _now_us: f"{item['name']}@{item['filter']}"),
        Column("state", "DOING", cell=_cell_doing),
        Column("lag", "LAG", cell=_cell_lag),
        Column("arrivals_1m", "RATES", cell=_cell_rates),
        Column("acked", "DONE", cell=_cell_done),
        Column("dead", "QUEUES", cell=_cell_queues),
        Column("leader_since", "LED", cell=_cell_leader),
        Column("protocol", "SETTINGS", cell=_cell_settings),
        Column("max_deliver", "RETRIES", cell=_cell_retries),
        Column("ordered", "ORDER", cell=_cell_order),
        Column("created_at", "AGE"),
    ),
    lambda item: f"{item['name']}@{item['filter']}",
)


def show_group(
    settings: Settings,
    kind: Kind,
    facts: Item,
    lists: Sequence[tuple[Section, list[Item]]],
    look: GroupLook,
) -> None:
    """Print the page; `kind`, `facts` and `lists` are those of the group's own command."""
    found = look.description.verdict
    verdict = Verdict(found.level, found.sentence, found.commands)
    stuck = [item_of("Stuck", each) for each in look.description.stuck]
    item = {
        **verdict.fields,
        **facts,
        "stuck": stuck,
        **{section.field: rows for section, rows in lists},
        "operations": operation_lines(look.operations),
        "events": event_lines(look.events),
    }
    sections = [
        Section("stuck", STUCK_KIND),
        *(section for section, _ in lists),
        Section("operations", OPERATION_LINES),
        Section("events", EVENT_LINES),
        Section("next"),
    ]
    if settings.format in {Format.TABLE, Format.WIDE}:
        states = [grant.state for grant in look.description.grants]
        item["finished"] = states.count("finished")
    show_page(settings, kind, GROUP_PAGE_KIND, item, sections)

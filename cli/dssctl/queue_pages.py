"""What ``dssctl dlq`` and ``rq`` show at a closer look: a page of a queue, and whole entries, also
as a file.

Invariant: a file appears under its name once all that was chosen is in it and on the disk; where
that fails, it is not there, and nothing in the daemon has changed. The remains of a killed export
do not hinder the next one, and two concurrent exports do not touch each other's files.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import IO, TYPE_CHECKING

from dss_core.counted import counted
from dss_core.errors import FileUnwritable
from dssctl.connection import ask
from dssctl.nouns.queues import (
    ERROR_KIND,
    KEY_KIND,
    PAGE_KIND,
    PEEK_KIND,
    QUEUE_PAGE_KIND,
    error_item,
    key_item,
    whole_item,
)
from dssctl.output import Instant, Section, note, show_list, show_one
from dssctl.queue_lists import COUNTED, QUEUE_ENTRIES_COUNTED, Chosen
from dssctl.records.payloads import Decoding, payload_lines
from dssctl.settings import Format, Settings

if TYPE_CHECKING:
    from dss_client import Client, QueueEntry
    from dssctl.output import Item

QUEUE_PAGE_ROWS = 10
"""Errors and keys on a page: those that are most."""

THERE_ALREADY = "it is there already"


def peek_at(settings: Settings, chosen: Chosen, number: int, decoding: Decoding) -> None:
    """Show entries whole: the newest of those that are chosen."""

    async def found(client: "Client") -> "list[QueueEntry]":
        if chosen.is_all:
            newest = await client.queues.newest(
                chosen.group, number, level=chosen.level, whole=True
            )
            return list(newest.entries)
        kept: list[QueueEntry] = []
        async for each in chosen.entries(client, whole=True):
            kept = sorted([*kept, each], key=lambda entry: entry.entered_at_us)[-number:]
        return kept

    entries = ask(settings, found)
    if len(entries) == 1:
        _show_entry(settings, entries[0], decoding)
        return
    show_list(settings, PEEK_KIND, [whole_item(each, decoding) for each in entries])
    if not entries:
        one, _ = COUNTED[chosen.level]
        note(settings, f"there is no {one} of {chosen.told}")


def _show_entry(settings: Settings, entry: "QueueEntry", decoding: Decoding) -> None:
    item = whole_item(entry, decoding)
    if settings.format not in {Format.TABLE, Format.WIDE}:
        show_one(settings, PAGE_KIND, item)
        return
    content = list(payload_lines(entry.payload, decoding))
    show_one(settings, PAGE_KIND, {**item, "content": content}, [Section("content")])


def describe_queue(settings: Settings, group: str, level: str) -> None:
    """Show how a queue of a group stands: how much, of which errors, of which keys, what next."""
    item = ask(settings, lambda client: _queue_item(client, group, level))
    sections = [Section("errors", ERROR_KIND), Section("keys", KEY_KIND), Section("next")]
    show_one(settings, QUEUE_PAGE_KIND, item, sections)


async def _queue_item(client: "Client", named: str, level: str) -> "Item":
    group = (await client.groups.describe(named)).group
    name = f"{group.name}@{group.filter}"
    errors = await client.queues.errors(name, level=level, at_most=QUEUE_ENTRIES_COUNTED)
    keys = await client.queues.keys(name, level=level, at_most=QUEUE_ENTRIES_COUNTED)
    newest = await client.queues.newest(name, 1, level=level)
    exact = errors.counted >= errors.total and keys.looked_at_all
    oldest_us = min((each.oldest_us for each in errors.errors), default=None)
    return {
        "group": name,
        "level": level,
        "total": errors.total,
        "oldest_at": _moment(oldest_us),
        "newest_at": _moment(newest.entries[-1].entered_at_us if newest.entries else None),
        "max_deliver": group.max_deliver,
        "ordered": group.ordered,
        "on_dead_letter": group.on_dead_letter or None,
        "counts_exact": exact,
        "errors": [
            error_item(each, exact=errors.counted >= errors.total)
            for each in errors.errors[:QUEUE_PAGE_ROWS]
        ],
        "keys": [key_item(each, exact=keys.looked_at_all) for each in keys.keys[:QUEUE_PAGE_ROWS]],
        "next": list(_next_commands(name, level, errors.total)),
    }


def _moment(at_us: int | None) -> "Instant | None":
    return None if at_us is None else Instant(at_us)


def _next_commands(name: str, level: str, total: int) -> Iterator[str]:
    if not total:
        return
    group = quote(name)
    if level == "dead":
        yield f"dssctl dlq peek {group} --error FINGERPRINT"
        yield f"dssctl dlq redrive {group} --error FINGERPRINT --canary 10"
    else:
        yield f"dssctl groups why {group} --key KEY"
        yield f"dssctl rq retry-now {group} --error FINGERPRINT"


def export_entries(settings: Settings, chosen: Chosen, path: str) -> None:
    """Write what is chosen as JSON, a line each, with payloads and headers.

    Raises:
        FileUnwritable: the file cannot be written, or is there already.
        OutputUnwritable: standard output takes no more.
    """
    settings.timeout_s = settings.wait_s  # all of the queues is read

    async def written(client: "Client") -> int:
        count = 0
        with _destination(path) as out:
            async for each in chosen.entries(client, whole=True):
                item = {"kind": "QueueEntry", "item": whole_item(each, Decoding.AUTO)}
                out.write(f"{json.dumps(item, default=_plain, ensure_ascii=False)}\n")
                count += 1
        return count

    count = ask(settings, written)
    where = "" if path == "-" else f" to {path}"
    note(settings, f"{counted(count, *COUNTED[chosen.level])} of {chosen.told} written{where}")


def _plain(value: object) -> str:
    assert isinstance(value, Instant), value
    return value.rfc3339()


@contextmanager
def _destination(path: str) -> "Iterator[IO[str]]":
    if path == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    whole, part = Path(path), Path(f"{path}.{os.getpid()}.part")
    if whole.exists():
        raise FileUnwritable(path=path, reason=THERE_ALREADY)
    try:
        with part.open("w", encoding="utf-8", errors="surrogateescape") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        _give_name(part, whole)
    except FileExistsError as failed:
        raise FileUnwritable(path=path, reason=THERE_ALREADY) from failed
    except OSError as failed:
        raise FileUnwritable(path=path, reason=failed.strerror) from failed
    finally:
        with suppress(OSError):
            part.unlink()


def _give_name(part: Path, whole: Path) -> None:
    """Give the file its name, unless another file has taken the name meanwhile.

    Raises:
        FileExistsError: it has.
    """
    try:
        whole.hardlink_to(part)
    except PermissionError:  # a file system without links, as on a stick
        part.rename(whole)

"""``dssctl daemon``: the process itself."""

from typing import TYPE_CHECKING

import typer

from dssctl.connection import ask
from dssctl.output import Column, Instant, Item, Kind, Section, show_one
from dssctl.output.model import size
from dssctl.tree import Command, noun, settings_of

if TYPE_CHECKING:
    from dss_client import UnreadLoss

app = noun("daemon")

STATUS_KIND = Kind(
    "DaemonStatus",
    (
        Column(
            "state",
            "STATE",
            styles={"serving": "green", "read-only": "yellow", "stopping": "yellow"},
        ),
        Column("state_reason", "REASON"),
        Column("version", "VERSION"),
        Column("pid", "PID"),
        Column("started_at", "UP"),
        Column("data_dir", "DATA-DIR"),
        Column("listening", "LISTENING"),
        Column("topics", "TOPICS"),
        Column("streams", "STREAMS"),
        Column("groups", "GROUPS"),
        Column("sessions", "SESSIONS"),
        Column("sessions_waiting", "SESSIONS-AWAY"),
        Column("log_bytes", "LOG-SIZE", cell=size("log_bytes")),
        Column("disk_free_bytes", "DISK-FREE", cell=size("disk_free_bytes")),
        Column("unread_records_gone", "UNREAD-GONE"),
        Column("errors_in_a_day", "ERRORS-24H"),
        Column("sqlite_version", "SQLITE"),
        Column("boot_id", "BOOT-ID"),
    ),
    lambda item: str(item["boot_id"]),
)
QUARANTINED_KIND = Kind(
    "QuarantinedFile",
    (Column("file", "FILE"), Column("reason", "REASON")),
    lambda item: str(item["file"]),
)


def _lost(item: Item, _now_us: int) -> str:
    return f"{item['records']}" if item["exact"] else f"<={item['records']}"


UNREAD_LOSS_KIND = Kind(
    "UnreadLoss",
    (
        Column("topic", "TOPIC"),
        Column("group", "GROUP"),
        Column("filter", "FILTER"),
        Column("records", "RECORDS", right=True, cell=_lost),
        Column("last_at", "LAST"),
    ),
    lambda item: f"{item['topic']} {item['group']}@{item['filter']}",
)


@app.command(cls=Command)
def status(context: typer.Context) -> None:
    """Show how the daemon is: state, address, counts, disk, files set aside, unread losses."""
    settings = settings_of(context)
    answer = ask(settings, lambda client: client.daemon.status())
    item = {
        "state": answer.state,
        "state_reason": answer.state_reason or None,
        "version": answer.version,
        "pid": answer.pid,
        "started_at": Instant.of_ms(answer.started_at_ms),
        "data_dir": answer.data_dir,
        "listening": list(answer.listening),
        "topics": answer.topics,
        "streams": answer.streams,
        "groups": answer.groups,
        "sessions": answer.sessions,
        "sessions_waiting": answer.sessions_waiting,
        "log_bytes": answer.log_bytes,
        "disk_free_bytes": answer.disk_free_bytes,
        "unread_records_gone": answer.unread_records_gone,
        "errors_in_a_day": answer.errors_in_a_day,
        "sqlite_version": answer.sqlite_version,
        "boot_id": answer.boot_id,
        "quarantined": [{"file": each.file, "reason": each.reason} for each in answer.quarantined],
        "unread_losses": [_unread_loss(each) for each in answer.unread_losses],
    }
    sections = [Section("quarantined", QUARANTINED_KIND)] if answer.quarantined else []
    if answer.unread_losses:
        sections.append(Section("unread_losses", UNREAD_LOSS_KIND))
    show_one(settings, STATUS_KIND, item, sections)


def _unread_loss(loss: "UnreadLoss") -> Item:
    return {
        "topic": loss.topic,
        "group": loss.group,
        "filter": loss.filter,
        "records": loss.records,
        "exact": loss.exact,
        "last_at": Instant.of_ms(loss.last_at_ms),
    }

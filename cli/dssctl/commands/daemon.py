"""``dssctl daemon``: the process itself."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from dssctl.connection import ask
from dssctl.output import Column, Instant, Item, Kind, Section, show_one
from dssctl.output.model import Cell, size
from dssctl.page import page
from dssctl.tree import noun, settings_of

if TYPE_CHECKING:
    from dss_client import DaemonStatus, UnreadLoss

app = noun("daemon")


def _of(name: str) -> Cell:
    def cell(item: Item, _now_us: int) -> str:
        return f"{item[name]} of {item[f'{name}_max']}"

    return cell


STATUS_COLUMNS = (
    Column(
        "state",
        "STATE",
        styles={"serving": "green", "read-only": "yellow", "stopping": "yellow"},
    ),
    Column("state_reason", "REASON"),
    Column("version", "VERSION"),
    Column("pid", "PID"),
    Column("started_at", "UP"),
    Column("before", "BEFORE", styles={"crashed": "red", "killed": "yellow"}),
    Column("before_ended_at", "BEFORE-ENDED"),
    Column("before_reason", "BEFORE-REASON"),
    Column("data_dir", "DATA-DIR"),
    Column("listening", "LISTENING"),
    Column("operators_socket", "OPERATORS"),
    Column("topics", "TOPICS"),
    Column("streams", "STREAMS"),
    Column("groups", "GROUPS"),
    Column("sessions", "SESSIONS"),
    Column("sessions_waiting", "SESSIONS-AWAY"),
    Column("connections", "CONNECTIONS", cell=_of("connections")),
    Column("calls", "CALLS", cell=_of("calls")),
    Column("delivery_bytes", "IN-DELIVERY", cell=size("delivery_bytes")),
    Column("log_bytes", "LOG-SIZE", cell=size("log_bytes")),
    Column("disk_free_bytes", "DISK-FREE", cell=size("disk_free_bytes")),
    Column("disk_size_bytes", "DISK-SIZE", cell=size("disk_size_bytes")),
    Column("open_files", "OPEN-FILES", cell=_of("open_files")),
    Column("producers", "PRODUCERS", cell=_of("producers")),
    Column("unread_records_gone", "UNREAD-GONE"),
    Column("errors_in_a_day", "ERRORS-24H"),
    Column("sqlite_version", "SQLITE"),
    Column("boot_id", "BOOT-ID"),
)
STATUS_KIND = Kind("DaemonStatus", STATUS_COLUMNS, lambda item: str(item["boot_id"]))
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


PEER_KIND = Kind(
    "PeerHeld",
    (
        Column("peer", "PEER"),
        Column("connections", "CONNECTIONS", right=True),
        Column("calls", "CALLS", right=True),
        Column("sessions", "SESSIONS", right=True),
        Column("delivery_bytes", "IN-DELIVERY", right=True, cell=size("delivery_bytes")),
    ),
    lambda item: str(item["peer"]),
)


@app.command(cls=page(STATUS_KIND))
def status(context: typer.Context) -> None:
    """Show how the daemon is: state, address, counts, who holds what, disk, losses."""
    settings = settings_of(context)
    answer = ask(settings, lambda client: client.daemon.status())
    item = status_item(answer)
    sections = [Section("quarantined", QUARANTINED_KIND)] if answer.quarantined else []
    if answer.unread_losses:
        sections.append(Section("unread_losses", UNREAD_LOSS_KIND))
    if answer.peers:
        sections.append(Section("peers", PEER_KIND))
    show_one(settings, STATUS_KIND, item, sections)


def status_item(status: "DaemonStatus") -> Item:
    """How a daemon is, as the renderer takes it."""
    ended = status.before_ended_at_ms
    return {
        "state": status.state,
        "state_reason": status.state_reason or None,
        "version": status.version,
        "pid": status.pid,
        "started_at": Instant.of_ms(status.started_at_ms),
        "before": status.before,
        "before_ended_at": ended and Instant.of_ms(ended),
        "before_reason": status.before_reason or None,
        "data_dir": status.data_dir,
        "listening": list(status.listening),
        "operators_socket": status.operators_socket or None,
        "topics": status.topics,
        "streams": status.streams,
        "groups": status.groups,
        "sessions": status.sessions,
        "sessions_waiting": status.sessions_waiting,
        **asdict(status.held),
        "log_bytes": status.log_bytes,
        "disk_free_bytes": status.disk_free_bytes,
        "disk_size_bytes": status.disk_size_bytes,
        "open_files": status.open_files,
        "open_files_max": status.open_files_max,
        "producers": status.producers,
        "producers_max": status.producers_max,
        "sessions_max": status.sessions_max,
        "unread_records_gone": status.unread_records_gone,
        "errors_in_a_day": status.errors_in_a_day,
        "sqlite_version": status.sqlite_version,
        "boot_id": status.boot_id,
        "quarantined": [{"file": each.file, "reason": each.reason} for each in status.quarantined],
        "unread_losses": [_unread_loss(each) for each in status.unread_losses],
        "peers": [asdict(each) for each in status.peers],
    }


def _unread_loss(loss: "UnreadLoss") -> Item:
    return {
        "topic": loss.topic,
        "group": loss.group,
        "filter": loss.filter,
        "records": loss.records,
        "exact": loss.exact,
        "last_at": Instant.of_ms(loss.last_at_ms),
    }

"""``dssctl daemon``: the process itself."""

from typing import TYPE_CHECKING

import typer

from dssctl.connection import ask
from dssctl.items import item_of
from dssctl.output import Column, Item, Kind, Section, show_one
from dssctl.output.model import Cell, size
from dssctl.page import page
from dssctl.tree import noun, settings_of

if TYPE_CHECKING:
    from dss_client import DaemonStatus

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
    Column("certificate", "CERTIFICATE"),
    Column("certificate_ends", "CERTIFICATE-ENDS"),
    Column("certificate_problem", "CERTIFICATE-PROBLEM"),
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
    Column("incarnation", "INCARNATION"),
    Column("restores", "RESTORES"),
    Column("backup_at", "LAST-BACKUP"),
    Column("principals_suspended", "SUSPENDED"),
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
    """The state of a daemon as the renderer takes it."""
    return item_of("DaemonStatus", status, delivery_bytes_max=status.held.delivery_bytes_max)

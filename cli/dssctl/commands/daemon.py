"""``dssctl daemon``: the process itself."""

import typer

from dssctl.connection import ask
from dssctl.output import Column, Instant, Kind, Section, show_one
from dssctl.output.model import size
from dssctl.tree import Command, noun, settings_of

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


@app.command(cls=Command)
def status(context: typer.Context) -> None:
    """Show how the daemon is: state, address, counts, disk, files set aside."""
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
        "sqlite_version": answer.sqlite_version,
        "boot_id": answer.boot_id,
        "quarantined": [{"file": each.file, "reason": each.reason} for each in answer.quarantined],
    }
    sections = [Section("quarantined", QUARANTINED_KIND)] if answer.quarantined else []
    show_one(settings, STATUS_KIND, item, sections)

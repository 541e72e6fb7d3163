"""Backups: what each field means, and how a table shows it."""

from typing import TYPE_CHECKING

from dssctl.fields.model import Fields, moment, number, size, span, text
from dssctl.output import Column, Instant, Item, Kind
from dssctl.output.model import size as sized

if TYPE_CHECKING:
    from dss_core.backups.manifest import Manifest

BACKUP: Fields = (
    number("number", "Which backup of its directory it is; it rises."),
    moment("taken_at", "When it was taken, by the daemon's clock."),
    size("bytes", "Size of all its files."),
    number("files", "How many it has."),
    text("version", "The daemon's version."),
    number("store_format", "The format of the daemon's store."),
    text("incarnation", "The incarnation of the daemon's data."),
)

MADE_BACKUP: Fields = (
    *BACKUP,
    size("new_bytes", "Bytes written for it; other backups have the rest."),
    span("duration_ms", "How long it took."),
    text("directory", "Where it is; null if it went to stdout.", optional=True),
)

_COLUMNS = (
    Column("number", "NUMBER", right=True),
    Column("taken_at", "TAKEN"),
    Column("bytes", "SIZE", right=True, cell=sized("bytes")),
    Column("files", "FILES", right=True),
    Column("version", "VERSION", wide=True),
    Column("store_format", "FORMAT", wide=True),
    Column("incarnation", "INCARNATION", wide=True),
)

BACKUP_KIND = Kind("Backup", _COLUMNS, lambda item: str(item["number"]))

MADE_BACKUP_KIND = Kind(
    "MadeBackup",
    (
        Column("directory", "DIRECTORY"),
        *_COLUMNS,
        Column("new_bytes", "NEW", cell=sized("new_bytes")),
        Column("duration_ms", "TOOK"),
    ),
    lambda item: str(item["number"]),
)


def backup_item(manifest: "Manifest") -> Item:
    """A backup as an item."""
    return {
        "number": manifest.number,
        "taken_at": Instant(manifest.taken_at_us),
        "bytes": manifest.bytes,
        "files": len(manifest.files),
        "version": manifest.version,
        "store_format": manifest.store_format,
        "incarnation": manifest.incarnation,
    }

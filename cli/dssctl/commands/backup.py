"""``dssctl backup``: copies of all that a daemon has, in a directory of this machine."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.counted import bytes_text, counted
from dss_core.errors import BackupNotFound
from dssctl.confirm import confirm
from dssctl.connection import connected, require_daemon
from dssctl.listing import list_known, listing
from dssctl.nouns.backups import BACKUP_KIND, MADE_BACKUP_KIND, backup_item
from dssctl.output import Item, note, show_one
from dssctl.progress import copying
from dssctl.quantities import size_bytes
from dssctl.removal import REMOVAL_KIND, show_removal
from dssctl.settings import Settings
from dssctl.tree import noun, settings_of, showing

if TYPE_CHECKING:
    from dss_client.backups import MadeBackup

app = noun("backup")

STDOUT = "-"

Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="A directory of backups on this machine.")
]


@app.command(cls=showing(MADE_BACKUP_KIND))
def create(
    context: typer.Context,
    directory: Annotated[
        str,
        typer.Argument(
            metavar="DIR", help="Directory of backups, or a new one; '-' writes a tar to stdout."
        ),
    ],
    rate: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Limit of bytes a second, such as 50M.")
    ] = None,
) -> None:
    """Copy all that the daemon has, while it runs; what an earlier backup there has stays."""
    settings = settings_of(context)
    if directory == STDOUT and sys.stdout.isatty():
        raise typer.BadParameter("A tar is no text: send it to a file, or to a program.")
    bytes_s = 0 if rate is None else size_bytes(rate)
    made = asyncio.run(_made(settings, directory, bytes_s))
    if directory == STDOUT:
        note(settings, f"a backup of {bytes_text(made.bytes)} was written; check it: dssd verify")
        return
    item: Item = {
        **backup_item(made.manifest),
        "new_bytes": made.new_bytes,
        "duration_ms": round(made.seconds * 1_000),
        "directory": str(Path(directory).absolute()),
    }
    show_one(settings, MADE_BACKUP_KIND, item)


async def _made(settings: Settings, directory: str, bytes_s: int) -> "MadeBackup":
    with copying(settings, "backup") as told:
        async with connected(settings) as client:
            await require_daemon(client, settings)
            if directory == STDOUT:
                out = sys.stdout.buffer
                return await client.backups.write_tar(out, bytes_s=bytes_s, told=told)
            return await client.backups.create(directory, bytes_s=bytes_s, told=told)


@app.command("ls", cls=listing(BACKUP_KIND))
def list_backups(context: typer.Context, directory: Directory) -> None:
    """List the backups in a directory, the oldest first."""
    from dss_core.backups.directory import BackupDirectory

    manifests = BackupDirectory.existing(directory).manifests()
    list_known(context, [backup_item(each) for each in manifests])


@app.command("rm", cls=showing(REMOVAL_KIND))
def remove(
    context: typer.Context,
    directory: Directory,
    numbers: Annotated[
        list[int] | None, typer.Argument(metavar="[N]...", help="As backup ls shows them.")
    ] = None,
    keep: Annotated[
        int | None, typer.Option("--keep", metavar="N", min=1, help="All but the newest N.")
    ] = None,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
) -> None:
    """Remove backups from a directory, and the files that no other backup has."""
    from dss_core.backups.directory import BackupDirectory

    settings = settings_of(context)
    if (numbers is None) == (keep is None):
        raise typer.BadParameter("Name the backups, or say how many stay: --keep N.")
    BackupDirectory.existing(directory)
    with BackupDirectory.opened(directory) as opened:
        there = [int(path.stem) for path in opened.manifest_paths()]
        going = numbers or there[: -(keep or 0)]
        for number in going:
            if number not in there:
                listed = ", ".join(map(str, there)) or "none"
                raise BackupNotFound(path=opened.path, number=number, listed=listed)
        if going:
            what = f"Removing {counted(len(going), 'backup')} from {opened.path}"
            confirm(settings, what, ", ".join(map(str, going)), confirmed=yes)
        size = opened.remove(frozenset(going))
    note(settings, f"{counted(len(going), 'backup')} removed, {bytes_text(size)} freed")
    show_removal(settings, ", ".join(map(str, going)), removed=bool(going))

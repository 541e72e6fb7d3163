"""What goes into a bundle: answers of the daemon, and what this machine tells.

Invariant: each source is asked apart, and one that fails spoils no other. Nothing here reads a
record.
"""

import dataclasses
import os
import platform
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dss_core.errors import DssError
from dss_core.redaction import LEFT_OUT, SECRET
from dssctl import VERSION
from dssctl.config.document import config_path

if TYPE_CHECKING:
    from dss_client import Client

BUNDLE_EVENTS = 2_000
BUNDLE_OPERATIONS = 500
"""The newest ones; older ones hardly concern the present problem."""

LOG_LINES = 5_000
"""From the end of a log."""

LOG_READ_BYTES = 4 << 20
"""From the end of a file, to find so many lines in."""

LOG_S_MAX = 15.0
"""For the journal, which can be slow on a large one."""


Question = Callable[["Client"], Awaitable[object]]


class Asked(NamedTuple):
    """A question to the daemon, and the file that its answer goes to."""

    name: str
    what: str
    question: Question


async def _events(client: "Client") -> object:
    return (await client.events.list(latest=BUNDLE_EVENTS)).events


ASKED = (
    Asked("status.json", "the daemon's own status", lambda client: client.daemon.status()),
    Asked("topics.jsonl", "topics with what they keep", lambda client: client.topics.list()),
    Asked("groups.jsonl", "groups, private ones too", lambda client: client.groups.list(all=True)),
    Asked("grants.jsonl", "streams of groups", lambda client: client.grants.list()),
    Asked("stuck.jsonl", "what does not move", lambda client: client.groups.stuck()),
    Asked("sessions.jsonl", "sessions of clients", lambda client: client.sessions.list()),
    Asked("schedules.jsonl", "schedules", lambda client: client.schedules.list()),
    Asked("jobs.jsonl", "bulk jobs", lambda client: client.jobs.list()),
    Asked(
        "operations.jsonl",
        f"the newest {BUNDLE_OPERATIONS} operations",
        lambda client: client.operations.list(latest=BUNDLE_OPERATIONS),
    ),
    Asked("events.jsonl", f"the newest {BUNDLE_EVENTS} events, the audit among them", _events),
)

JOURNAL = "journal.log"
"""The end of the daemon's log."""

_VARIABLES = ("DSSCTL_", "DSSD_", "DSS_", "GRPC_", "XDG_", "PYTHON", "LANG", "LC_", "TERM")
_LIBRARIES = ("grpcio", "protobuf", "pyarrow", "rich", "typer", "uvloop", "xxhash", "sqlite-utils")


def versions() -> dict[str, object]:
    """Of the tool, of what it stands on, and of this machine."""
    return {
        "dssctl": VERSION,
        "python": sys.version,
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
    }


def environment() -> dict[str, object]:
    """The variables that change what the tool does; secrets without their values."""
    return {
        name: LEFT_OUT if SECRET.search(name) else value
        for name, value in sorted(os.environ.items())
        if name.startswith(_VARIABLES)
    }


def configuration() -> list[str]:
    """The tool's own file, secrets left out.

    Raises:
        OSError, DssError: there is none, or it cannot be read.
    """
    lines = config_path().read_text(errors="backslashreplace").splitlines()
    return [_without_secret(line) for line in lines]


def process(pid: int) -> list[str]:
    """What the kernel tells of the daemon: its limits, threads and memory.

    Raises:
        OSError: it may not be looked at.
    """
    folder = Path("/proc") / str(pid)
    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    # In another name space of processes the number may be that of anybody.
    parts = [f"# {command if 'dssd' in command else LEFT_OUT}"]
    for name in ("limits", "status"):
        parts += [f"# {name}", *(folder / name).read_text().splitlines()]
    return parts


def journal() -> list[str]:
    """The end of the daemon's log, as systemd has it.

    Raises:
        OSError, subprocess.SubprocessError: there is none to be had.
    """
    command = ["journalctl", "--no-pager", "-o", "short-iso", "-n", str(LOG_LINES), "-u", "dssd"]
    done = subprocess.run(command, capture_output=True, timeout=LOG_S_MAX, check=True)
    lines = done.stdout.decode(errors="backslashreplace").splitlines()
    # What systemd itself says stands between dashes: "-- No entries --", "-- Boot 1f... --".
    if all(line.startswith("-- ") for line in lines):
        raise OSError("the journal has nothing of the unit dssd; name its log with --log")
    return lines


def tail_of(path: Path) -> list[str]:
    """The last lines of a file.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - LOG_READ_BYTES, 0))
        lines = file.read(LOG_READ_BYTES).decode(errors="backslashreplace").splitlines()
    return lines[-LOG_LINES:]


def plain(value: object) -> object:
    """An answer as JSON knows it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {each.name: plain(getattr(value, each.name)) for each in fields}
    match value:
        case Mapping():
            return {str(key): plain(inner) for key, inner in value.items()}
        case bytes():
            return value.hex()
        case tuple() | list():
            return [plain(each) for each in value]
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def why(failure: Exception) -> str:
    """Why a source gave nothing."""
    return f"{failure.code}: {failure.message}" if isinstance(failure, DssError) else str(failure)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _without_secret(line: str) -> str:
    key, equals, _ = line.partition("=")
    return f"{key}{equals} {LEFT_OUT}" if equals and SECRET.search(key) else line

"""``dssctl __complete KIND PREFIX [WORD...]``: the names with this prefix, one per line.

The words are those of the command line so far. Names come from the cache; if it is older than a
moment, its list command refreshes it in the background, while the old names are answered. Only if
there never were names does the first answer wait a little for that command. Invariant: it prints
names or nothing, writes nothing to stderr, and ends with 0, whatever the daemon does.
"""

import os
import sys
import time

from dssctl.completing.names_kept import (
    LISTED_BY,
    file_for,
    folder_for,
    kept,
    safe,
    target_options,
)

NAMES_FRESH_S = 10.0
"""The age after which the daemon is asked again; between key strokes nothing changes."""

NAMES_OLD_S = 86_400.0
"""Names that are older are not answered: they may mean something else by now."""

NAMES_FIRST_WAIT_S = 0.4
"""How long the first key stroke waits if no names are stored yet: a list takes half of it."""

NAMES_FIRST_LOOK_S = 0.01
"""The pause between two looks whether they are there."""

NAMES_LIST_TIMEOUT_S = 2.0
"""The timeout of the list that refreshes names; nobody waits for it."""


TYPE_CHECKING = False  # `typing` and `collections.abc` take as long as all the rest
if TYPE_CHECKING:
    from collections.abc import Sequence


def answer(words: "Sequence[str]") -> int:
    """Print the completions of the second word, a name of the kind in the first word."""
    kind, prefix, *line = *words, "", ""
    if kind in LISTED_BY and (safe(prefix) or not prefix):
        try:
            _print(prefix, _names(kind, line))
        except OSError:
            # Nobody reads, or no process can be started: no names.
            return 0
    return 0


def _print(prefix: str, names: "Sequence[str]") -> None:
    found = "".join(f"{name}\n" for name in names if name.startswith(prefix) and _is_safe(name))
    os.write(sys.stdout.fileno(), found.encode())


def _is_safe(line: str) -> bool:
    """Whether a name is safe, whoever wrote the file."""
    return safe(line.partition("\t")[0]) and line.replace("\t", " ", 1).isprintable()


def _names(kind: str, line: "Sequence[str]") -> list[str]:
    folder = folder_for(line, os.environ)
    path = file_for(folder, kind)
    age_s = _age_s(path)
    if age_s is not None and age_s < NAMES_FRESH_S and not _configured_since(path):
        return kept(folder, kind)
    asked = f"{path}.asked"
    asked_s = _age_s(asked)
    if asked_s is None or asked_s >= NAMES_FRESH_S:
        _touch(folder, asked)
        process = _list_again(kind, line)
        if age_s is None or age_s >= NAMES_OLD_S or _configured_since(path):
            _await_first(path, process)
    age_s = _age_s(path)
    usable = age_s is not None and age_s < NAMES_OLD_S and not _configured_since(path)
    return kept(folder, kind) if usable else []


def _age_s(path: str) -> float | None:
    """How long ago a file was written; None where there is none."""
    try:
        return max(time.time() - os.stat(path).st_mtime, 0.0)  # noqa: PTH116 - see names_kept
    except OSError:
        return None


def _configured_since(path: str) -> bool:
    """Whether the configuration changed since the names were stored, so another daemon may be
    meant."""
    home = os.environ.get("XDG_CONFIG_HOME", "")
    if not home.startswith("/"):
        home = os.path.join(os.path.expanduser("~"), ".config")  # noqa: PTH111, PTH118
    try:
        configured = os.stat(os.environ.get("DSSCTL_CONFIG") or f"{home}/dssctl/config.toml")  # noqa: PTH116
        # The age of a device tells nothing.
        is_file = configured.st_mode & 0o170000 == 0o100000
        return is_file and configured.st_mtime_ns > os.stat(path).st_mtime_ns  # noqa: PTH116
    except OSError:
        return False


def _touch(folder: str, path: str) -> None:
    """Note the time of this request, so that an absent daemon is not asked at each key stroke."""
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    os.utime(descriptor)
    os.close(descriptor)


def _list_again(kind: str, line: "Sequence[str]") -> int:
    """Start the list command, which stores the names that it shows; returns its process."""
    command = [sys.executable, "-m", "dssctl", *LISTED_BY[kind], *target_options(line)]
    options = ["-o", "name", "--no-input", "--timeout", f"{NAMES_LIST_TIMEOUT_S:g}"]
    quiet = [(os.POSIX_SPAWN_OPEN, each, os.devnull, os.O_RDWR, 0) for each in (0, 1, 2)]
    return os.posix_spawn(
        sys.executable,
        [*command, *options],
        {**os.environ, "DSSCTL_CONNECT_WAIT": "0"},
        file_actions=quiet,
        setsid=True,
    )


def _await_first(path: str, process: int) -> None:
    """Wait until the names are there, or the command has failed, for a moment at most."""
    before = _written_ns(path)
    until = time.monotonic() + NAMES_FIRST_WAIT_S
    while time.monotonic() < until and _written_ns(path) == before:
        if os.waitpid(process, os.WNOHANG)[0]:
            return
        time.sleep(NAMES_FIRST_LOOK_S)


def _written_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116
    except OSError:
        return 0

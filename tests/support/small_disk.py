"""A small file system, and a way to fill it.

Invariant: it is unmounted when the block ends, even if something still has one of its files open.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STEPS_BYTES = (1 << 20, 4_096)


class CannotMount(Exception):
    """No file system can be mounted here; the message tells why."""


@contextmanager
def mounted(disk: Path, size_bytes: int) -> Iterator[Path]:
    """A file system of this size, in memory, mounted on a directory that this creates.

    Raises:
        CannotMount: this process may not mount, or there is no such file system.
    """
    disk.mkdir()
    options = ("-t", "tmpfs", "-o", f"size={size_bytes}")
    try:
        tried = subprocess.run(
            ["mount", *options, "tmpfs", str(disk)], check=False, capture_output=True, text=True
        )
    except FileNotFoundError as error:
        raise CannotMount(f"no file system can be mounted here: {error}") from error
    if tried.returncode:
        raise CannotMount(f"no file system can be mounted here: {tried.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Take all the room that is left; returns the file that uses it."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in _STEPS_BYTES:
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return filler

"""The locks on a file, as the kernel reports them."""

from pathlib import Path

LOCKS = Path("/proc/locks")


def locks_on(path: Path) -> list[str]:
    """Each lock as kind, mode, process and range, without its number in the kernel's list."""
    inode = path.stat().st_ino
    lines = [line.split() for line in LOCKS.read_text().splitlines()]
    return [" ".join(words[1:]) for words in lines if words[5].endswith(f":{inode}")]

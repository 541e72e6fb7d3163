"""What the kernel says of the locks on a file."""

from pathlib import Path

LOCKS = Path("/proc/locks")


def locks_on(path: Path) -> list[str]:
    """Each as kind, mode, process and range, without the number that it has in the list."""
    inode = path.stat().st_ino
    lines = [line.split() for line in LOCKS.read_text().splitlines()]
    return [" ".join(words[1:]) for words in lines if words[5].endswith(f":{inode}")]

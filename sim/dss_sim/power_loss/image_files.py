"""Images as real files, and real files as images.

Contents are written where they are not zero; the rest are holes. If there is a tmpfs it is used,
because a disk would only slow down the many states.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dss_sim.power_loss.image import Content, Image

SHARED_MEMORY = Path("/dev/shm")


@contextmanager
def fast_directory() -> Iterator[Path]:
    """A directory that is removed afterwards, in memory if possible."""
    where = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="dss-disk-", dir=where) as directory:
        yield Path(directory)


def write_image(image: Image, root: Path) -> None:
    """Make the directory hold exactly the image."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for path in sorted(image.directories):
        (root / path).mkdir()
    for path, file in image.files.items():
        with (root / path).open("wb") as opened:
            opened.write(file.content)
            opened.truncate(file.size)


def read_image(root: Path) -> Image:
    """The image of a directory; sockets are left out."""
    entries = [path for path in root.rglob("*") if path.is_file() or path.is_dir()]
    files = {
        str(path.relative_to(root)): _content(path.read_bytes())
        for path in entries
        if path.is_file()
    }
    return Image(files, frozenset(str(p.relative_to(root)) for p in entries if p.is_dir()))


def _content(content: bytes) -> Content:
    return Content(content.rstrip(b"\0"), len(content))

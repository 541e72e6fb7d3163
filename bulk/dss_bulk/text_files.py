"""Recognises the encoding of a text file by its first bytes, before rows are made of it.

Invariant: a file of another encoding is refused by its name, never read as if it were UTF-8.
"""

import codecs
from pathlib import Path

from dss_core.errors import InputRefused

_NO_TEXT = (
    (codecs.BOM_UTF32_LE, "UTF-32; write it as UTF-8"),
    (codecs.BOM_UTF16_LE, "UTF-16; write it as UTF-8"),
    (codecs.BOM_UTF16_BE, "UTF-16; write it as UTF-8"),
    (b"\x1f\x8b", "compressed by gzip; unpack it"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd; unpack it"),
    (b"PK\x03\x04", "a zip archive; unpack it"),
    (b"PAR1", "Parquet; give it the name of one"),
)


def require_text(path: Path) -> None:
    """Check that a file may be UTF-8.

    Raises:
        InputRefused: it has another encoding.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(4)
    if not head:
        raise InputRefused(file=path, reason="it is empty")
    for begins, what in _NO_TEXT:
        if head.startswith(begins):
            raise InputRefused(file=path, reason=f"it is {what}")

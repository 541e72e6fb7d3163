"""All files and directories at one moment, as a value. Invariant: equal images hold equal bytes."""

from dataclasses import dataclass
from hashlib import blake2b


@dataclass(frozen=True, slots=True)
class Content:
    """The contents of a file: bytes, then zeros up to its size."""

    content: bytes
    size: int

    def __bytes__(self) -> bytes:
        """All of it."""
        return self.content.ljust(self.size, b"\0")


@dataclass(frozen=True, slots=True)
class Image:
    """Files and directories by their path."""

    files: dict[str, Content]
    directories: frozenset[str]

    def digest(self) -> bytes:
        """A digest; equal images have equal ones."""
        told = blake2b(repr(sorted(self.directories)).encode(), digest_size=16)
        for path, file in sorted(self.files.items()):
            told.update(f"{path} {file.size} {len(file.content)}\n".encode())
            told.update(file.content)
        return told.digest()

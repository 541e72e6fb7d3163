"""Which errors count as one: those that differ in numbers and ids only.

Invariant: the same error has the same fingerprint in every version, for entries keep theirs. This
module must not know entries.
"""

import re
from functools import lru_cache

from xxhash import xxh64_intdigest

FINGERPRINTS_KEPT_MAX = 256
"""How many fingerprints are cached, of errors of at most a kilobyte: records that fail together
mostly fail for one reason."""

_CHANGES = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b(?:0x)?(?=[0-9a-f]*[0-9])[0-9a-f]+\b|[0-9]+",
    re.IGNORECASE,
)
"""What differs between two errors of one cause: ids and numbers."""


@lru_cache(maxsize=FINGERPRINTS_KEPT_MAX)
def fingerprint(error_type: str, error: str) -> int:
    """The same for errors that differ in numbers and ids only."""
    return xxh64_intdigest(f"{error_type}\0{_CHANGES.sub('#', error)}".encode())

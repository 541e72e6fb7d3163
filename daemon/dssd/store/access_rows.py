"""The rows of principals. See `dssd.store.rows`."""

from dataclasses import dataclass

from dssd.store.row import Row


@dataclass(frozen=True, slots=True)
class PrincipalRow(Row):
    """A principal with a token or a certificate, and its permissions. Administrators write it."""

    KEY = ("name",)
    TABLE = "principals"
    name: str
    """With its kind: ``token:billing``, ``cert:worker``."""
    permissions: str
    """A JSON list; in an object, as ``suspended``, from a restore until it is confirmed."""
    secret: bytes
    """SHA-256 of the token; empty for a certificate."""
    older_secret: bytes
    """SHA-256 of the previous token, while both are valid; else empty."""
    older_until_ms: int
    """When the older token ends, by the wall clock."""
    expires_at_ms: int | None
    """By the wall clock; None: never."""
    created_at_ms: int
    created_by: str

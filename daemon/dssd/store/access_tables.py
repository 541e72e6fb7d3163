"""The migration that added the table of principals.

It has the columns as they were then; later changes are migrations of their own.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite_utils


def add_principals(db: "sqlite_utils.Database") -> None:
    """Add the table of principals. Whoever reached an older daemon was on its machine."""
    db.execute(
        "CREATE TABLE principals (name TEXT NOT NULL, permissions TEXT NOT NULL, "
        "secret BLOB NOT NULL, older_secret BLOB NOT NULL, older_until_ms INTEGER NOT NULL, "
        "expires_at_ms INTEGER, created_at_ms INTEGER NOT NULL, created_by TEXT NOT NULL, "
        "version INTEGER NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (name)"
        ") STRICT, WITHOUT ROWID"
    )

"""How a client wants its session; apart from the session, which loads gRPC."""

from typing import NamedTuple


class SessionOptions(NamedTuple):
    """How a client's session is opened."""

    client_id: str
    clean_start: bool = True
    session_expiry_s: int = 0
    credit_records: int | None = None
    credit_bytes: int | None = None

"""Logs a record whose handler failed: one line, with its parts as fields.

Invariant: no payload is logged, and of a key only the beginning.
"""

import logging
from typing import TYPE_CHECKING

from dss_client._failure import Reject, failure_of

if TYPE_CHECKING:
    from dss_client.record import DeliveredRecord

_LOG = logging.getLogger("dss_client")

LOGGED_KEY_BYTES_MAX = 128
"""How much of a failed record's key is logged."""


def log_failure(record: "DeliveredRecord", error: BaseException, outcome: str) -> None:
    """Log the failure, and what becomes of the record; with a traceback, unless it was rejected."""
    failure = failure_of(error)
    parts = {
        "stream": record.stream,
        "offset": record.offset,
        "key": record.key and record.key[:LOGGED_KEY_BYTES_MAX],
        "attempt": record.attempt,
        "error_type": failure.kind,
        "error": failure.text,
    }
    _LOG.error(
        "the handler failed: stream=%s offset=%d key=%r attempt=%d error_type=%s error=%r; %s",
        *parts.values(),
        outcome,
        extra={f"dss_{name}": value for name, value in parts.items()},
        exc_info=None if isinstance(error, Reject) else error,
    )

"""Headers of a copy of a dead letter: why the record was dead, and in which group.

::

    dss-dead-group     billing@orders/#       whose dead letter it was
    dss-dead-attempt   5                      how often it had failed
    dss-dead-error     ValueError: no price   its last error, or its cause where there was none
    dss-dead-us        1795000000000000       when it died, microseconds since 1970

They stand behind the record's own, before those of its origin (`dss_core.origin`). Invariant: a
record has each at most once, of the dead letter that was copied last.
"""

from dss_core.rows_layout import Headers

GROUP = "dss-dead-group"
ATTEMPT = "dss-dead-attempt"
ERROR = "dss-dead-error"
US = "dss-dead-us"
DEAD_HEADERS = (GROUP, ATTEMPT, ERROR, US)


def error_words(error_type: str, error: str, cause: str) -> str:
    """What went wrong, as one text."""
    return ": ".join(filter(None, (error_type, error))) or cause


def told_headers(
    headers: Headers, group: str, attempt: int, error: str, entered_at_us: int
) -> Headers:
    """The headers of a record, then why it was dead."""
    own = tuple(each for each in headers if each[0] not in DEAD_HEADERS)
    return (
        *own,
        (GROUP, group.encode()),
        (ATTEMPT, b"%d" % attempt),
        (ERROR, error.encode()),
        (US, b"%d" % entered_at_us),
    )

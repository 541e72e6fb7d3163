"""Notes beside a command's data: no errors, but reasons why a person may wait in vain.

Invariant: notes go to stderr, and change nothing about what the command does.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dssctl.connection import in_time
from dssctl.output import note
from dssctl.settings import Settings

if TYPE_CHECKING:
    from dss_client import Client

_FOREIGN_WILDCARDS = re.compile(r"[>*]|\.[+#]|[+#]\.")


async def note_unmatched(client: "Client", settings: Settings, written: str) -> None:
    """Note if no topic has subjects that the filter, of a group or plain, matches.

    Raises:
        IllegalFilter, QueueWithoutGroup, IllegalName: the filter breaks a rule.
        DssError: the daemon does not answer.
    """
    from dss_core.filters import SubscriptionFilter, TopicFilter

    wanted = SubscriptionFilter.parse(written).filter
    topics = await in_time(settings, client.topics.list())
    patterns = (pattern for each in topics for pattern in each.topic.patterns)
    if any(wanted.overlaps(TopicFilter.parse(pattern)) for pattern in patterns):
        return
    note(settings, f"no topic matches {wanted} yet{_hint(wanted.text)}")


def _hint(filter_text: str) -> str:
    """What may be wrong with a filter that matches nothing."""
    if _FOREIGN_WILDCARDS.search(filter_text):
        return "; wildcards are + (one level) and # (all that remain) between /, as in orders/+/eu"
    if filter_text.startswith("/"):
        return "; it begins with an empty level: quote a filter that begins with '$'"
    return ""


@contextmanager
def outages_noted(settings: Settings) -> Iterator[None]:
    """Print notes about connections that the client lost and restored."""
    log = logging.getLogger("dss_client")
    handler = _Notes(settings)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


class _Notes(logging.Handler):
    """Writes warnings as notes."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(logging.WARNING)
        self._settings = settings

    def emit(self, record: logging.LogRecord) -> None:
        """Write one."""
        note(self._settings, record.getMessage())

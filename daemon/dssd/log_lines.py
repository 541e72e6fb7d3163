"""The daemon's log on stderr: lines of text for people, or of JSON for programs.

Each line has an *event*, a stable dotted name or the code of a condition, so that programs need not
parse sentences. Lines of libraries have the event ``library``. Invariant: one line of JSON is one
object, whatever stands in its texts.
"""

import json
import logging
from datetime import UTC, datetime
from enum import StrEnum

from dss_core.errors import DssError
from dssd.log_writer import LogWriter

LIBRARY = "library"

_LOG = logging.getLogger(__name__)


class LogFormat(StrEnum):
    """How lines are written."""

    TEXT = "text"
    JSON = "json"


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """One object."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", LIBRARY),
            "text": record.getMessage(),
            "logger": record.name,
        }
        fields = getattr(record, "fields", None)
        if fields:
            line["fields"] = fields
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


_TEXT = logging.Formatter(
    "%(asctime)s %(levelname)s %(name)s [%(event)s]: %(message)s", defaults={"event": LIBRARY}
)


def write_lines(form: LogFormat) -> LogWriter:
    """Send all log records to stderr in this form from now on."""
    handler = LogWriter()
    handler.setFormatter(_JsonLines() if form is LogFormat.JSON else _TEXT)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    return handler


def log_condition(error: DssError) -> None:
    """Log the condition that ends the daemon, under its code."""
    fields = {name: str(value) for name, value in error.fields.items()}
    if error.hint_text:
        fields["hint"] = error.hint_text
    _LOG.error("%s", error.message, extra={"event": error.code, "fields": fields})

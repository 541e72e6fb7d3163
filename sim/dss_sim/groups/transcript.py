"""The events of a run, one line each, for people.

    3.930670  c0       HandedOut g1 t2/0/0 @8 c0 epoch 3
    3.936012  leader   Received UpdateProgress #2 ...

Values are written with their class and the fields that are set (not None, zero, empty).
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

from dss_core.ids import StreamId

COLUMN = 10


class Transcript:
    """Collects lines; give its `note` to `run.run`."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, at_us: int, who: str, what: object) -> None:
        """Write one event."""
        self.lines.append(f"{at_us / 1e6:10.6f}  {who:{COLUMN}} {readable(what)}")


def readable(value: object) -> str:
    """A value in short form."""
    match value:
        case StreamId(storage_topic_id, partition):
            return f"{storage_topic_id}/{partition}"
        case bytes():
            return _named(value)
        case tuple() if hasattr(value, "_asdict"):
            return _of(type(value).__name__, value._asdict())
        case tuple() | list():
            return f"({', '.join(map(readable, value))})"
        case _ if is_dataclass(value) and not isinstance(value, type):
            shown = {field.name: getattr(value, field.name) for field in fields(value)}
            return _of(type(value).__name__, shown)
        case _:
            return str(value)


def _of(name: str, shown: Mapping[str, object]) -> str:
    told = [
        f"{field}={readable(value)}"
        for field, value in shown.items()
        if value not in (None, 0, "", b"", ())
        and field not in ("now_ms", "at_us")
        and not callable(value)
    ]
    return f"{name}({', '.join(told)})"


def _named(value: bytes) -> str:
    """Ids that count up are shown as their number."""
    if len(value) == 16:
        return f"#{int.from_bytes(value)}"
    return repr(value)[2:-1]

"""What the global options say, gathered from before and after the verb; the later one counts."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TextIO

from dss_core.errors import IllegalArgument
from dssctl.limits import CALL_TIMEOUT_S, CONNECT_WAIT_S, OPERATION_WAIT_S

CONNECT_WAIT_VARIABLE = "DSSCTL_CONNECT_WAIT"


class Format(StrEnum):
    """What stdout gets."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    CSV = "csv"
    NAME = "name"


class Colour(StrEnum):
    """Whether terminals get colours."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(slots=True)
class ChangeOptions:
    """How a command that changes something goes about it."""

    dry_run: bool = False
    confirmed: bool = False
    reason: str = ""
    if_revision: int | None = None
    operation_id: str | None = None
    """The caller's own, which makes a repeated command harmless."""
    wait: bool = True
    """For the end of the operation, for at most `Settings.wait_s`."""
    detailed_exit_code: bool = False


@dataclass(slots=True)
class Settings:
    """One invocation's options. The option parser fills it in; everyone else reads."""

    format: Format = Format.TABLE
    endpoint: str | None = None
    """None: the client looks at DSSCTL_ENDPOINT, then takes the default socket."""
    colour: Colour = Colour.AUTO
    headers: bool = True
    may_ask: bool = True
    timeout_s: float = CALL_TIMEOUT_S
    wait_s: float = OPERATION_WAIT_S
    change: ChangeOptions = field(default_factory=ChangeOptions)
    """Of commands that change something."""
    clock_us: Callable[[], int] = lambda: time.time_ns() // 1_000
    """The present, for ages."""

    @property
    def machine_readable(self) -> bool:
        """Whether a program reads stdout, so that errors are JSON too."""
        return self.format in {Format.JSON, Format.JSONL}

    @property
    def connect_wait_s(self) -> float:
        """How long to wait for a daemon whose socket does not answer yet.

        Raises:
            IllegalArgument: the environment gives something else than seconds.
        """
        given = os.environ.get(CONNECT_WAIT_VARIABLE)
        try:
            wait_s = float(given) if given else CONNECT_WAIT_S
        except ValueError:
            wait_s = -1.0
        if not 0 <= wait_s < float("inf"):
            argument = f"{CONNECT_WAIT_VARIABLE} {given}"
            raise IllegalArgument(argument=argument, rule="it is a number of seconds")
        return min(wait_s, self.timeout_s)

    def coloured(self, stream: TextIO) -> bool:
        """Whether this stream gets colours."""
        if self.colour is not Colour.AUTO:
            return self.colour is Colour.ALWAYS
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return stream.isatty() and not plain

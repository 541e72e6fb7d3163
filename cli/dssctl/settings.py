"""The settings of one invocation, from options and configuration; of an option that is given twice,
the last counts.

Invariant: code that reads a setting need not know where it came from. `dssctl.config` says which
origin counts.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TextIO

from dss_core.endpoints import endpoint_texts
from dssctl.limits import CALL_TIMEOUT_S, CONNECT_WAIT_S, OPERATION_WAIT_S


class Format(StrEnum):
    """What stdout gets."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    CSV = "csv"
    NAME = "name"
    TEMPLATE = "template"
    """A line an item, as `Settings.template` says."""
    NONE = "none"
    """Nothing; notes and errors remain."""
    HELP = "help"
    """Which fields the items have, in place of items; no daemon is asked."""


ENGINES = ("local", "spark", "auto")
"""Of bulk jobs."""

SPARK_MASTER = "local[*]"
"""All cores of this machine."""


class TimeStyle(StrEnum):
    """How tables show moments."""

    RELATIVE = "relative"
    """An age: 5m12s."""
    ISO = "iso"
    UNIX = "unix"


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
    """Whether to wait for the end of the operation, for at most `Settings.wait_s`."""
    detailed_exit_code: bool = False
    plan_seen: bool = False
    """The plan was shown on the same terminal, above the outcome."""
    confirm_name: str | None = None
    """The name of what is changed, given beforehand for a protected context."""


@dataclass(slots=True)
class ListOptions:
    """Which items a listing shows, in which order, and whether it goes on."""

    filter: str = ""
    pattern: str = ""
    """Of names; empty: any."""
    sort: str = ""
    columns: str = ""
    limit: int | None = None
    watch_s: float | None = None
    """How often the list is fetched again; None: once."""


@dataclass(frozen=True, slots=True)
class ContextInUse:
    """The named target of this invocation, and what it demands of commands that change
    something."""

    name: str
    read_only: str = ""
    """The context that lets nothing be changed; empty: none does."""
    protected: str = ""
    """The context that asks for a reason and a name; empty: none does."""
    elsewhere: str = ""
    """A sentence where the endpoint is not that of the context."""


class CredentialFiles(NamedTuple):
    """Credentials of the caller, and the authority that the daemon's certificate must have."""

    token_file: str | None
    ca: str | None
    cert: str | None
    key: str | None


@dataclass(slots=True)
class Settings:
    """One invocation's options. Parser and configuration fill it in; everyone else reads."""

    format: Format = Format.TABLE
    template: str = ""
    """Of `Format.TEMPLATE`."""
    endpoint: str | None = None
    """None: the client looks at DSSCTL_ENDPOINT, then takes the default socket."""
    token_file: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    """Files. None: the client looks at their variables, DSSCTL_TLS_CA for one."""
    context: ContextInUse | None = None
    read_only: bool = False
    """Nothing may be changed, whatever the context says."""
    time: TimeStyle | None = None
    """None: ages, but in what is printed as it comes moments."""
    quiet: bool = False
    """No notes."""
    colour: Colour = Colour.AUTO
    headers: bool = True
    may_ask: bool = True
    pager: str | None = None
    """None: that of PAGER, or less; empty: none."""
    timeout_s: float = CALL_TIMEOUT_S
    wait_s: float = OPERATION_WAIT_S
    connect_s: float = CONNECT_WAIT_S
    change: ChangeOptions = field(default_factory=ChangeOptions)
    """Of commands that change something."""
    listing: ListOptions = field(default_factory=ListOptions)
    """Of commands that list."""
    engine: str = ENGINES[0]
    """That drives bulk jobs where no flag says so."""
    spark_master: str = SPARK_MASTER
    flags: dict[str, str] = field(default_factory=dict)
    """What options gave for keys of the configuration."""
    clock_us: Callable[[], int] = lambda: time.time_ns() // 1_000
    """The present, for ages."""

    @property
    def machine_readable(self) -> bool:
        """Whether a program reads stdout, so that errors are JSON too."""
        return self.format in {Format.JSON, Format.JSONL}

    @property
    def credentials(self) -> CredentialFiles:
        """As the client takes them: those that fit to the endpoint, and those of flags."""
        ways = endpoint_texts(self.endpoint) if self.endpoint else []
        is_remote = not all(each.startswith("unix:") for each in ways)
        has_tls = any(each.startswith("dss://") for each in ways)
        return CredentialFiles(
            token_file=self.token_file if is_remote or "token_file" in self.flags else None,
            ca=self.tls_ca if has_tls or "tls_ca" in self.flags else None,
            cert=self.tls_cert if has_tls or "tls_cert" in self.flags else None,
            key=self.tls_key if has_tls or "tls_key" in self.flags else None,
        )

    @property
    def connect_wait_s(self) -> float:
        """How long to wait for a daemon whose socket does not answer yet."""
        return min(self.connect_s, self.timeout_s)

    def coloured(self, stream: TextIO) -> bool:
        """Whether this stream gets colours."""
        if self.colour is not Colour.AUTO:
            return self.colour is Colour.ALWAYS
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return stream.isatty() and not plain

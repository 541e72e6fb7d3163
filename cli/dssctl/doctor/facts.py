"""The doctor's facts: about the tool itself, and the daemon's findings.

Invariant: a question that fails leaves its part of the facts empty and its condition in `failed`.
"""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dss_core.default_paths import expanded
from dss_core.errors import DssError
from dssctl.connection import connected, in_time, require_daemon
from dssctl.settings import Settings

if TYPE_CHECKING:
    from dss_client import Client, DaemonStatus, Verdict


@dataclass(slots=True)
class Facts:
    """All facts that could be asked for."""

    endpoint: str = ""
    socket: str = ""
    """The fault of the socket file, if the endpoint is one; else empty."""
    unreachable: DssError | None = None
    round_trip_ms: float = 0.0
    now_us: int = 0
    """The clock of this machine, in the middle of the question to the daemon."""
    status: "DaemonStatus | None" = None
    found: "tuple[Verdict, ...]" = ()
    """Findings by the daemon's own rules."""
    failed: DssError | None = None
    """Why they could not be asked for."""


async def gathered(settings: Settings) -> Facts:
    """Ask all questions; by the operators' socket if the usual one does not answer.

    Raises:
        IllegalArgument, SocketPathTooLong: the endpoint is illegal.
    """
    from dss_client import connect, operators_endpoint

    facts = Facts()
    async with connected(settings) as client:
        facts.endpoint = client.endpoint
        facts.socket = _trouble_with(client.endpoint)
        try:
            await require_daemon(client, settings)
            await _ask(client, settings, facts)
        except DssError as unreachable:
            facts.unreachable = unreachable
    reserve = operators_endpoint(settings.endpoint)
    if facts.unreachable is not None and reserve is not None:
        with suppress(DssError):
            async with connect(endpoint=reserve, patient=False) as client:
                await _ask(client, settings, facts)
    return facts


async def _ask(client: "Client", settings: Settings, facts: Facts) -> None:
    began_us, began = settings.clock_us(), time.perf_counter()
    facts.status = await in_time(settings, client.daemon.status())
    took_s = time.perf_counter() - began
    facts.round_trip_ms = took_s * 1_000
    facts.now_us = began_us + round(took_s * 1_000_000 / 2)
    try:
        facts.found = await in_time(settings, client.daemon.findings())
    except DssError as failure:
        facts.failed = failure


def _trouble_with(endpoint: str) -> str:
    """What is wrong with a socket file, before anybody connects."""
    if not endpoint.startswith("unix:"):
        return ""
    path = expanded(Path(endpoint.removeprefix("unix:").removeprefix("//")))
    try:
        if not path.exists():
            return f"there is no socket {path}"
        if not path.is_socket():
            return f"{path} is no socket"
    except PermissionError:
        return f"{path.parent} may not be looked into"
    return "" if os.access(path, os.R_OK | os.W_OK) else f"{path} is not for this user"

"""Asking all sources and writing the bundle."""

import asyncio
import getpass
import json
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from dss_core.errors import DssError
from dss_core.redaction import Redaction, reasons_in
from dss_core.times import text_of_ms
from dssctl import VERSION
from dssctl.connection import connected, in_time, require_daemon
from dssctl.doctor.facts import gathered
from dssctl.doctor.local_findings import findings_of
from dssctl.output import Item
from dssctl.settings import Settings
from dssctl.support.bundle import KIND, Bundle, bundle_at
from dssctl.support.sources import (
    ASKED,
    JOURNAL,
    configuration,
    environment,
    journal,
    plain,
    process,
    tail_of,
    versions,
    why,
)

if TYPE_CHECKING:
    from dss_client import DaemonStatus

_NAMED_FIELDS = frozenset(
    {"name", "group", "filter", "topic", "client_id", "client", "patterns", "principal", "subject"}
)
_PROSE = re.compile(r"[:,] ")
"""In what tells of a peer: the names in it stand elsewhere, too."""
STEPS = len(ASKED) + 6


@dataclass(slots=True)
class _Answers:
    """The daemon's answers, by file, and for each missing one the reason."""

    found: dict[str, object] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    endpoint: str = ""

    @property
    def status(self) -> "DaemonStatus | None":
        """How the daemon stands, where it said so."""
        return cast("DaemonStatus | None", self.found.get("status.json"))

    def names(self) -> Iterator[str]:
        """Every name that the answers speak of."""
        for answer in self.found.values():
            yield from _names_in(plain(answer))

    def reasons(self) -> Iterator[str]:
        """What people said why they did something."""
        return reasons_in(plain(self.found))


def gather(
    settings: Settings,
    path: Path,
    logs: Iterable[Path],
    *,
    hide_names: bool,
    show: Callable[[int, int], None],
) -> Item:
    """Write the bundle; what became of it.

    Raises:
        FileUnwritable: the file cannot be written, or is there.
    """
    now_us = settings.clock_us()
    with bundle_at(path, now_us // 1_000_000) as bundle:
        steps = _Steps(show)
        answers = asyncio.run(_asked(settings, steps))
        names = [*answers.names(), *_own_names()] if hide_names else ()
        redaction = Redaction(names, answers.reasons())
        _write_answers(bundle, answers, redaction)
        findings = asyncio.run(gathered(settings))
        found = [plain(each) for each in findings_of(findings)]
        bundle.add("doctor.jsonl", "what the doctor finds", _lines(found, redaction))
        steps.done()
        _write_local(bundle, answers, logs, redaction, steps)
        bundle.close(
            {
                "kind": KIND,
                "dssctl": VERSION,
                "gathered_at": text_of_ms(now_us // 1_000),
                "names_hidden": hide_names,
                "payloads": "none: no record was read",
            }
        )
        entries, missing = list(bundle.entries), list(bundle.missing)
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "names_hidden": hide_names,
        "entries": [dict(each) for each in cast("list[Item]", entries)],
        "missing": [dict(each) for each in missing],
    }


class _Steps:
    """How many parts are done."""

    def __init__(self, show: Callable[[int, int], None]) -> None:
        self._show = show
        self._done = 0

    def done(self) -> None:
        """One more is."""
        self._done += 1
        self._show(self._done, STEPS)


async def _asked(settings: Settings, steps: _Steps) -> _Answers:
    answers = _Answers()
    async with connected(settings) as client:
        answers.endpoint = client.endpoint
        try:
            await require_daemon(client, settings)
        except DssError as absent:
            answers.missing = {each.name: why(absent) for each in ASKED}
            return answers
        for name, _, question in ASKED:
            try:
                answers.found[name] = await in_time(settings, question(client))
            except DssError as failure:
                answers.missing[name] = why(failure)
            steps.done()
    return answers


def _write_answers(bundle: Bundle, answers: _Answers, redaction: Redaction) -> None:
    for name, what, _ in ASKED:
        if name in answers.missing:
            bundle.miss(name, answers.missing[name])
            continue
        answer = plain(answers.found[name])
        items = answer if isinstance(answer, list) else [answer]
        bundle.add(name, what, _lines(items, redaction))


def _write_local(
    bundle: Bundle,
    answers: _Answers,
    logs: Iterable[Path],
    redaction: Redaction,
    steps: _Steps,
) -> None:
    status = answers.status

    def of_daemon() -> list[str]:
        if status is None:
            raise ProcessLookupError("the daemon did not say which process it is")
        if not answers.endpoint.startswith("unix:"):
            raise ProcessLookupError("the daemon runs elsewhere, as far as is known")
        return process(status.pid)

    local: list[tuple[str, str, Callable[[], Iterable[str]]]] = [
        ("versions.json", "versions here", lambda: _lines([versions()], redaction)),
        ("environment.json", "variables here", lambda: _lines([environment()], redaction)),
        ("config.toml", "the tool's configuration", configuration),
        ("process.txt", "limits and memory of the daemon", of_daemon),
        (JOURNAL, "the end of the daemon's log", journal),
    ]
    local += ((f"logs/{path.name}", f"the end of {path.name}", _reader(path)) for path in logs)
    for name, what, read in local:
        try:
            bundle.add(name, what, map(redaction.text, read()))
        except (OSError, subprocess.SubprocessError, DssError) as failure:
            bundle.miss(name, redaction.text(why(failure)))
        steps.done()


def _reader(path: Path) -> Callable[[], Iterable[str]]:
    return lambda: tail_of(path)


def _lines(items: Iterable[object], redaction: Redaction) -> Iterator[str]:
    return (json.dumps(redaction.value(item), ensure_ascii=False) for item in items)


def _names_in(value: object, key: str = "") -> Iterator[str]:
    match value:
        case dict():
            for name, inner in value.items():
                yield from _names_in(inner, name)
        case list():
            for inner in value:
                yield from _names_in(inner, key)
        case str() if key in _NAMED_FIELDS and not _PROSE.search(value):
            yield value


def _own_names() -> Iterator[str]:
    """Of this machine and of who asks."""
    yield platform.node()
    try:
        yield getpass.getuser()
    except (KeyError, OSError):
        yield os.environ.get("HOME", "").rpartition("/")[2]

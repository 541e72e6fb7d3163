"""What a bundle tells: whether it is whole, what the doctor found there, what its logs say.

Invariant: pure. The doctor's findings are those of the time of gathering; no daemon is asked. Parts
that this version does not know, because another one gathered the bundle, are named.
"""

import re
from collections import Counter
from collections.abc import Iterator

from dss_core.counted import counted
from dssctl import VERSION
from dssctl.doctor.finding import Finding, Level, fine, problem, warning
from dssctl.support.bundle import FORMAT, MANIFEST
from dssctl.support.reading import Gathered
from dssctl.support.sources import ASKED, JOURNAL

LOG_CODES_TOLD = 5
"""Of those that a log names: the most frequent."""


_CODE = re.compile(r"\bDSS[0-9]{4}\b")
_TRACEBACK = "Traceback (most recent call last)"
_AGAIN = "Gather it again: dssctl support gather"
_BY = "Read it in the bundle, or analyze it with dssctl"
_FINDINGS, _EVENTS = "doctor.jsonl", "events.jsonl"
_LEVELS: dict[object, Level] = {each.value: each for each in Level}
_HERE = ("versions.json", "environment.json", "config.toml", "process.txt", JOURNAL)
_KNOWN = frozenset({MANIFEST, _FINDINGS, *_HERE, *(each.name for each in ASKED)})


def findings_in(bundle: Gathered) -> list[Finding]:
    """All findings: of the bundle itself, of the doctor, of logs and events."""
    rules = (_whole, _format, _unknown, _answers, _cut, _doctor, _logs, _events)
    return [finding for rule in rules for finding in rule(bundle)]


def _whole(bundle: Gathered) -> Iterator[Finding]:
    spoiled = bundle.spoiled()
    if spoiled:
        text = f"Not as they were gathered: {', '.join(spoiled)}."
        yield problem("bundle.whole", text, _AGAIN)
    else:
        files = counted(len(bundle.manifest["entries"]), "file")
        hidden = ", names taken out" if bundle.manifest["names_hidden"] else ""
        yield fine("bundle.whole", f"gathered {bundle.manifest['gathered_at']}, {files}{hidden}")


def _format(bundle: Gathered) -> Iterator[Finding]:
    form, by = bundle.manifest["format"], bundle.manifest["dssctl"]
    if form != FORMAT:
        text = (
            f"It is of format {form}, gathered by dssctl {by}; this is dssctl {VERSION}, which "
            f"knows format {FORMAT}: what it tells of the bundle may be wrong or too little."
        )
        yield warning("bundle.format", text, f"Analyze it with dssctl {by}")


def _unknown(bundle: Gathered) -> Iterator[Finding]:
    """Findings for files that this version does not know, and for lines that it cannot read."""
    files = [name for name in bundle.files if name not in _KNOWN and not name.startswith("logs/")]
    if files:
        text = f"Nothing is known of these files, and nobody looked at them: {', '.join(files)}."
        yield warning("bundle.unknown", text, f"{_BY} {bundle.manifest['dssctl']}")
    for name in (_FINDINGS, _EVENTS):
        lines = bundle.passed_over(name)
        if name == _FINDINGS:
            lines += sum(each.get("level") not in _LEVELS for each in bundle.items(name))
        if lines:
            text = f"{name} has {counted(lines, 'line')} that this dssctl cannot read."
            yield warning("bundle.unknown", text, f"{_BY} {bundle.manifest['dssctl']}")


def _answers(bundle: Gathered) -> Iterator[Finding]:
    """Findings for missing answers of the daemon. Many machines lack some of the other sources."""
    asked = {each.name for each in ASKED}
    for each in bundle.manifest["missing"]:
        if each["name"] in asked:
            text = f"{each['name']} is missing: {each['why']}"
            yield warning("bundle.answers", text, f"{_AGAIN}, where the daemon answers")


def _cut(bundle: Gathered) -> Iterator[Finding]:
    cut = [each["name"] for each in bundle.manifest["entries"] if each["cut"]]
    if cut:
        text = f"Longer than there was room for, their ends are missing: {', '.join(cut)}."
        yield warning("bundle.cut", text, "Ask for these apart.")


def _doctor(bundle: Gathered) -> Iterator[Finding]:
    """What it found then and there."""
    for each in bundle.items(_FINDINGS):
        level = _LEVELS.get(str(each.get("level")))
        if level is not None:
            remedy = str(each.get("remedy") or "")
            yield Finding(str(each.get("check")), level, str(each.get("text")), remedy)


def _logs(bundle: Gathered) -> Iterator[Finding]:
    names = [name for name in bundle.files if name == JOURNAL or name.startswith("logs/")]
    if not names:
        remedy = f"{_AGAIN} --log PATH"
        yield warning("logs.there", "No log of the daemon is in it.", remedy)
    for name in names:
        yield from _log(name, bundle.lines(name))


def _log(name: str, lines: list[str]) -> Iterator[Finding]:
    traces = sum(_TRACEBACK in line for line in lines)
    if traces:
        text = f"{name} has {counted(traces, 'traceback')}: a mistake of the program."
        yield problem("logs.tracebacks", text, f"Read it in the bundle: {name}")
    codes = Counter(code for line in lines for code in set(_CODE.findall(line)))
    for code, times in codes.most_common(LOG_CODES_TOLD):
        text = f"{name} names {code} in {counted(times, 'line')}."
        yield warning("logs.codes", text, f"dssctl errors explain {code}")
    if not traces and not codes:
        yield fine("logs.codes", f"{name}: {counted(len(lines), 'line')}, none names an error")


def _events(bundle: Gathered) -> Iterator[Finding]:
    events = list(bundle.items(_EVENTS))
    errors = [each for each in events if each.get("severity") == "error"]
    if errors:
        by_code = Counter(str(each.get("code")) for each in errors)
        named = ", ".join(f"{code} {times}" for code, times in by_code.most_common())
        text = f"{counted(len(errors), 'error')} among {counted(len(events), 'event')}: {named}."
        yield warning("events.errors", text, "Read them in the bundle: events.jsonl")

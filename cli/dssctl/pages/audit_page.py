"""The report of an audit: a verdict, findings, and how the records are spread."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from dss_core.counted import counted
from dssctl.output import Column, Instant, Item, Kind, Section
from dssctl.output.model import size
from dssctl.pages.verdict import HEALTH, VERDICT, Verdict, named, show_page
from dssctl.settings import Settings

if TYPE_CHECKING:
    from dss_bulk.audits.output import GroupLag
    from dss_bulk.audits.report import Report
    from dss_client import Job

BAR_PLACES = 10
"""Of the bar of a stream that has as many records as the mean."""

BAR_PLACES_MAX = 40
"""Of the longest bar: a stream with four times the mean, or all records of a topic."""

SKEW_NOTICED = 2.0
"""By how much a stream has more than the mean before a report says so."""


_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(places: float) -> str:
    """A bar of so many places, in eighths of one where the terminal has them."""
    places = min(max(places, 0.0), BAR_PLACES_MAX)
    if not (sys.stdout.encoding or "ascii").lower().replace("-", "").startswith("utf"):
        return "#" * round(places)
    full, eighths = divmod(round(places * 8), 8)
    return _EIGHTHS[8] * full + (_EIGHTHS[eighths] if eighths else "")


def _number(item: Item, field: str) -> float:
    value = item[field]
    assert isinstance(value, int | float)
    return float(value)


def _share(item: Item, _now_us: int) -> str:
    return f"{_number(item, 'share'):.1%}"


def _skew(item: Item, _now_us: int) -> str:
    """The bar of an even stream has a fixed length, so bars show who has more, and by how much."""
    of_mean = _number(item, "of_mean")
    return f"{of_mean:.2f}x {bar(of_mean * BAR_PLACES)}".rstrip()


def _share_bar(item: Item, now_us: int) -> str:
    return f"{_share(item, now_us):>6} {bar(_number(item, 'share') * BAR_PLACES_MAX)}".rstrip()


def _examples(item: Item, _now_us: int) -> str:
    examples = item["examples"]
    assert isinstance(examples, list | tuple)
    return "; ".join(map(str, examples)) or "-"


FINDING_KIND = Kind(
    "AuditFinding",
    (
        Column("level", "LEVEL", styles={"problem": "bold red", "notice": "yellow"}),
        Column("check", "CHECK"),
        Column("count", "COUNT", right=True),
        Column("sentence", "WHAT WAS FOUND"),
        Column("examples", "FOR ONE", cell=_examples),
    ),
    lambda item: str(item["check"]),
)
STREAM_KIND = Kind(
    "AuditStream",
    (
        Column("stream", "STREAM"),
        Column("records", "RECORDS", right=True),
        Column("bytes", "BYTES", right=True, cell=size("bytes")),
        Column("share", "SHARE", right=True, cell=_share),
        Column("of_mean", "OF MEAN", cell=_skew),
    ),
    lambda item: str(item["stream"]),
)
KEY_KIND = Kind(
    "AuditKey",
    (
        Column("key", "KEY"),
        Column("records", "RECORDS", right=True),
        Column("records_max", "AT MOST", right=True),
        Column("share", "SHARE", cell=_share_bar),
    ),
    lambda item: str(item["key"]),
)
GROUP_KIND = Kind(
    "AuditGroup",
    (
        Column("group", "GROUP"),
        Column("state", "STATE", styles={"active": "green", "stalled": "bold red"}),
        Column("lag", "LAG", right=True),
    ),
    lambda item: str(item["group"]),
)


def _looked_at(item: Item, _now_us: int) -> str:
    records = counted(int(_number(item, "records")), "record")
    chunks = f"{item['published']} of {item['chunks']} chunks"
    return f"{records}, {size('bytes')(item, 0)}, {item['keyless']} without a key; {chunks}"


AUDIT_KIND = Kind(
    "Audit",
    (
        HEALTH,
        VERDICT,
        Column("name", "AUDIT"),
        Column("state", "STATE"),
        Column("topic", "TOPIC"),
        Column("filter", "FILTER"),
        Column("records", "LOOKED AT", cell=_looked_at),
        Column("created_at", "AGE"),
    ),
    lambda item: str(item["name"]),
)
SECTIONS = (
    Section("findings", FINDING_KIND),
    Section("streams", STREAM_KIND),
    Section("keys", KEY_KIND),
    Section("groups", GROUP_KIND),
    Section("next"),
)


def show_audit(
    settings: Settings, job: "Job", report: "Report", groups: "tuple[GroupLag, ...]"
) -> None:
    """Print the report of an audit as it stands."""
    show_page(settings, AUDIT_KIND, AUDIT_KIND, audit_item(job, report, groups), SECTIONS)


def audit_item(job: "Job", report: "Report", groups: "tuple[GroupLag, ...]") -> Item:
    """The report as an item."""
    problems = [each for each in report.findings if each.is_problem]
    others = [each for each in report.findings if not each.is_problem]
    streams = sorted(report.streams, key=lambda each: -each.records)
    return {
        **audit_verdict(job, report).fields,
        "name": job.name,
        "job_id": job.job_id,
        "state": job.state,
        "topic": job.source,
        "filter": job.filter or None,
        "complete": job.state == "done",
        "published": job.published,
        "chunks": job.chunks,
        "records": report.records,
        "bytes": report.bytes,
        "keyless": report.keyless,
        "problems": len(problems),
        "created_at": Instant.of_ms(job.created_at_ms),
        "ended_at": None if job.ended_at_ms is None else Instant.of_ms(job.ended_at_ms),
        "findings": [
            {
                "check": each.check.value,
                "level": "problem" if each.is_problem else "notice",
                "count": each.count,
                "sentence": each.sentence,
                "examples": list(each.examples),
            }
            for each in (*problems, *others)
        ],
        "streams": [
            _plain(each, "stream", "records", "bytes", "share", "of_mean") for each in streams
        ],
        "keys": [
            {**_plain(each, "records", "records_max", "share"), "key": key_text(each.key)}
            for each in report.keys
        ],
        "groups": [_plain(each, "group", "state", "lag") for each in groups],
    }


def audit_verdict(job: "Job", report: "Report") -> Verdict:
    """How the topic is, as far as it was looked at."""
    name, records = named(job.name), counted(report.records, "record")
    problems = [each for each in report.findings if each.is_problem]
    if problems:
        what = "; ".join(each.sentence for each in problems)
        return Verdict("problem", f"{what}.", _remedies(job, report))
    if job.state != "done":
        how = f"Nothing is wrong in {records} so far; the audit is {job.state}"
        return Verdict("attention", f"{how}.", (f"dssctl jobs describe {name}",))
    if report.findings:
        what = "; ".join(each.sentence for each in report.findings)
        return Verdict("attention", f"{records} are as they ought to be; but {what}.", ())
    uneven = [each for each in report.streams if each.of_mean > SKEW_NOTICED]
    if uneven:
        worst = max(uneven, key=lambda each: each.of_mean)
        told = f"{worst.stream} has {worst.of_mean:.1f} times the mean"
        return Verdict("attention", f"{records} are as they ought to be; but {told}.", ())
    if not report.records:
        return Verdict("healthy", "There is no record in what was looked at.", ())
    return Verdict("healthy", f"{records} are all there, each once, in place and in order.", ())


def _remedies(job: "Job", report: "Report") -> tuple[str, ...]:
    """Where to look on."""
    commands: list[str] = []
    for each in report.findings:
        make = _REMEDIES.get(each.check.value)
        if make is not None:
            commands.append(make(job))
    return tuple(dict.fromkeys(commands))


_REMEDIES: dict[str, Callable[["Job"], str]] = {
    "gaps": lambda job: f"dssctl topics describe {named(job.source)}",
    "damage": lambda job: f"dssctl events --subject {named(job.source)}/",
    "duplicates": lambda _job: "dssctl jobs ls --filter kind=replay",
    "order": lambda _job: "dssctl jobs ls --filter kind=replay",
    "subjects": lambda job: f"dssctl topics describe {named(job.source)}",
}


def key_text(key: bytes) -> str:
    """A key for people: text where it is some."""
    return key.decode("utf-8", "backslashreplace")


def _plain(value: object, *fields: str) -> Item:
    return {field: getattr(value, field) for field in fields}

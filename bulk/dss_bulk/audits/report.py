"""The report of an audit: findings, amounts, unexamined parts. Plain values.

Invariant: a report is clean only if it has no problem, and it says what was not examined.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dss_bulk.audits.coding import ALL_STREAMS
from dss_bulk.audits.partial import PROBLEMS, Amount, Check, Found, Partial, first
from dss_core.counted import counted
from dss_core.ids import StreamName


@dataclass(frozen=True, slots=True)
class Finding:
    """The findings of one check."""

    check: Check
    is_problem: bool
    count: int
    """The number of offsets, records or pairs, as the sentence says."""
    sentence: str
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StreamAmount:
    """One stream, and its share of the whole."""

    stream: str
    records: int
    bytes: int
    share: float
    """Its share of the records of its storage topic."""
    of_mean: float
    """Its records relative to the average stream; 1: average."""


@dataclass(frozen=True, slots=True)
class KeyAmount:
    """A key with many records."""

    key: bytes
    """The beginning of the key."""
    records: int
    """The least number of its records."""
    records_max: int
    share: float
    """The least share of all records."""


@dataclass(frozen=True, slots=True)
class Report:
    """The whole report."""

    records: int
    bytes: int
    keyless: int
    findings: tuple[Finding, ...]
    streams: tuple[StreamAmount, ...]
    keys: tuple[KeyAmount, ...]
    """The streams, those with most records first."""

    def found(self, checks: Collection[Check]) -> tuple[Finding, ...]:
        """The findings of some checks."""
        return tuple(each for each in self.findings if each.check in checks)

    @property
    def is_clean(self) -> bool:
        """Whether there is no problem."""
        return not self.found(PROBLEMS)


def report_of(partial: Partial, partitions: Mapping[int, int]) -> Report:
    """The report of a partial result as if it were all; ``partitions`` are those of storage
    topics."""
    found = dict(partial.found)
    origins = partial.origins
    if origins.doubles:
        some = first(f"the copy of {stream}@{offset}" for stream, offset in origins.doubled)
        before = found.get(Check.DUPLICATES, Found())
        found[Check.DUPLICATES] = before.plus(Found(origins.doubles, some))
    found[Check.UNEXAMINED] = _unexamined(partial)
    findings = (_finding(check, found[check]) for check in Check if check in found)
    return Report(
        records=partial.records,
        bytes=partial.bytes,
        keyless=partial.keyless,
        findings=tuple(each for each in findings if each.count),
        streams=_streams(partial, partitions),
        keys=_keys(partial),
    )


def _finding(check: Check, found: Found) -> Finding:
    one, many = _SENTENCES[check]
    sentence = one if found.count == 1 else many
    return Finding(
        check,
        check in PROBLEMS,
        found.count,
        sentence.format(f"{found.count:,}"),
        found.examples,
    )


_SENTENCES = {
    Check.GAPS: (
        "{} offset has no record, and nothing says why",
        "{} offsets have no record, and nothing says why",
    ),
    Check.DAMAGE: ("{} record cannot be read", "{} records cannot be read"),
    Check.DUPLICATES: ("{} record is there a second time", "{} records are there a second time"),
    Check.MISROUTED: (
        "{} record is not in the partition of its key",
        "{} records are not in the partition of their key",
    ),
    Check.ORDER: (
        "{} copy stands behind a newer record of its key",
        "{} copies stand behind a newer record of their key",
    ),
    Check.SUBJECTS: (
        "{} record has a subject that no pattern of the topic meets",
        "{} records have a subject that no pattern of the topic meets",
    ),
    Check.LOST: (
        "{} offset has no record since a kill or a loss of power",
        "{} offsets have no record since a kill or a loss of power",
    ),
    Check.TIMES: (
        "{} record has an earlier time than the one before it of its key",
        "{} records have an earlier time than the one before them of their key",
    ),
    Check.UNEXAMINED: ("{} thing is not known", "{} things are not known"),
}


def _unexamined(partial: Partial) -> Found:
    """What the audit did not examine, in sentences."""
    said = []
    if partial.origins.unexamined:
        records = counted(partial.origins.unexamined, "copy", "copies")
        said.append(f"whether {records} came twice: smaller chunks remember more, --chunk 4M")
    if partial.apart:
        streams = ", ".join(first(stream for stream, _ in partial.apart))
        pairs = counted(len(partial.apart), "source")
        said.append(f"the order of copies of {pairs} from chunk to chunk, in {streams}")
    dropped = partial.found.get(Check.UNEXAMINED, Found()).count
    if dropped:
        said.append(f"the order of copies of {counted(dropped, 'source')} from chunk to chunk")
    if ALL_STREAMS in partial.streams:
        said.append("how records are spread: there are too many streams")
    return Found(len(said), tuple(said))


def _streams(partial: Partial, partitions: Mapping[int, int]) -> tuple[StreamAmount, ...]:
    """All streams of a storage topic of which any stream has records."""
    amounts = {
        StreamName.parse(name): each
        for name, each in partial.streams.items()
        if name != ALL_STREAMS
    }
    records: defaultdict[tuple[str, int], int] = defaultdict(int)
    for name, each in amounts.items():
        records[name.topic, name.ordinal] += each.records
    found = []
    for (topic, ordinal), total in sorted(records.items()):
        count = partitions[ordinal]
        for partition in range(count):
            name = StreamName(topic, ordinal, partition)
            each = amounts.get(name, Amount())
            share = each.records / (total or 1)
            found.append(StreamAmount(str(name), each.records, each.bytes, share, share * count))
    return tuple(found)


def _keys(partial: Partial) -> tuple[KeyAmount, ...]:
    keys, records = partial.keys, partial.records or 1
    counts = sorted(keys.counts.items(), key=lambda one: (-one[1], one[0]))
    return tuple(
        KeyAmount(keys.names.get(key, b""), count, count + keys.short, count / records)
        for key, count in counts
    )

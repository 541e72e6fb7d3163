"""The options of a read.

Invariant: unknown options are refused, so that a misspelled bound is not read as no bound. Names of
options are not case-sensitive, as in Spark. This module must not know Spark.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from dss_client import Client, connect
from dss_client.job_values import SourceRange
from dss_core.errors import IllegalArgument
from dss_core.filters import TopicFilter
from dss_core.ids import StreamName
from dss_spark.source.schema import columns_of, require_columns

SLICE_BYTES = 32 << 20
"""How much a task reads, unless an option sets it: a lost task costs less than a second, and a
topic of some gigabytes still has few tasks."""

SLICE_BYTES_MIN = 1 << 10
"""The least that the option may be: below it a scan would be all tasks and no records."""


CREDENTIALS = ("ca", "cert", "key", "token_file")
"""Options that name files by their paths on each host; their contents are in no option, property or
log."""

NAMES = (
    "bytes_per_partition",
    "ca",
    "cert",
    "columns",
    "dead_letters",
    "end",
    "endpoint",
    "fail_on_loss",
    "in_place",
    "key",
    "ranges",
    "records_per_batch",
    "start",
    "streams",
    "subject",
    "tells",
    "token_file",
    "topic",
)
_OF_BATCHES = ("dead_letters", "end", "ranges", "tells")
_OF_STREAMS = ("fail_on_loss", "records_per_batch")
EARLIEST, LATEST = "earliest", "latest"

Place = str | Mapping[str, int]
"""A word or a time, or offsets by stream."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of one read."""

    topic: str
    """Empty if the ranges define what is read."""
    endpoint: str | None
    start: Place
    end: Place
    ranges: tuple[SourceRange, ...] | None
    streams: frozenset[str] | None
    """Streams of the topic; None for all."""
    subject: str | None
    columns: tuple[str, ...]
    slice_bytes: int
    in_place: bool
    """Whether tasks read the daemon's files if they may open them."""
    records_per_batch: int | None
    fail_on_loss: bool
    named: frozenset[str]
    """The options that were given."""
    dead_letters: str = ""
    """A group: its dead letters of the topic are read, by their times of death."""
    tells: bool = False
    """Whether headers tell why a dead letter was dead."""
    credentials: tuple[tuple[str, str], ...] = ()
    """The files with which the daemon and a reader prove who they are."""

    def client(self) -> Client:
        """A client that asks the daemon without retries."""
        return connect(endpoint=self.endpoint, patient=False, **dict(self.credentials))  # type: ignore[arg-type] # by name

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """The options, as Spark passes them on.

        Raises:
            IllegalArgument, IllegalFilter, IllegalName: one breaks its rule, or there is none of
                its name.
        """
        options = {name.lower(): value for name, value in given.items()}
        _require_known(options)
        dead_letters = options.get("dead_letters", "")
        known = columns_of(dead_letters=bool(dead_letters))
        columns = tuple(_words(options.get("columns", ",".join(known))))
        require_columns(columns, known)
        subject = options.get("subject")
        streams = options.get("streams")
        return cls(
            topic=options.get("topic", ""),
            endpoint=options.get("endpoint"),
            start=_place("start", options.get("start", EARLIEST)),
            end=_place("end", options.get("end", LATEST)),
            ranges=_ranges(options["ranges"]) if "ranges" in options else None,
            streams=None if streams is None else frozenset(_words(streams)),
            subject=None if subject is None else TopicFilter.parse(subject).text,
            columns=columns,
            in_place=_yes_or_no("in_place", options.get("in_place", "true")),
            slice_bytes=_count(
                "bytes_per_partition",
                options.get("bytes_per_partition", str(SLICE_BYTES)),
                SLICE_BYTES_MIN,
            ),
            records_per_batch=_count("records_per_batch", options["records_per_batch"], 1)
            if "records_per_batch" in options
            else None,
            fail_on_loss=_yes_or_no("fail_on_loss", options.get("fail_on_loss", "true")),
            named=frozenset(options),
            dead_letters=dead_letters,
            tells=_yes_or_no("tells", options.get("tells", "false")),
            credentials=tuple((name, options[name]) for name in CREDENTIALS if name in options),
        )

    def for_batch(self) -> Self:
        """The same, for a read of a range.

        Raises:
            IllegalArgument: there is an option for streams.
        """
        return self._without(_OF_STREAMS, "it is for readStream")

    def for_stream(self) -> Self:
        """The same, for a continuous query.

        Raises:
            IllegalArgument: there is an option for ranges.
        """
        return self._without(_OF_BATCHES, "it is for read, not for readStream")

    def _without(self, names: Sequence[str], rule: str) -> Self:
        for name in names:
            if name in self.named:
                raise IllegalArgument(argument=f"option {name!r}", rule=rule)
        return self


def ranges_to_json(ranges: tuple[SourceRange, ...]) -> str:
    """The value of the option ``ranges``: what a chunk of a job reads."""
    fields = ("stream", "storage_topic_id", "partition", "start", "end")
    return json.dumps([{name: getattr(each, name) for name in fields} for each in ranges])


def _require_known(options: Mapping[str, str]) -> None:
    for name in options:
        if name not in NAMES:
            rule = f"it is one of {', '.join(NAMES)}"
            raise IllegalArgument(argument=f"option {name!r}", rule=rule)
    if ("ranges" in options) == ("topic" in options):
        rule = "either a topic is read, or ranges"
        raise IllegalArgument(argument="options topic and ranges", rule=rule)
    if "ranges" in options:
        for name in ("start", "end", "streams"):
            if name in options:
                raise IllegalArgument(argument=f"option {name!r}", rule="the ranges say it already")
    if "dead_letters" in options and "streams" in options:
        rule = "of dead letters all streams are read: choose by the column stream"
        raise IllegalArgument(argument="option 'streams'", rule=rule)


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[,\s]+", text) if word]


def _yes_or_no(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise IllegalArgument(argument=f"{name} {text!r}", rule="it is true or false")
    return text.lower() == "true"


def _count(name: str, text: str, least: int) -> int:
    if text.isdecimal() and int(text) >= least:
        return int(text)
    raise IllegalArgument(argument=f"{name} {text!r}", rule=f"a number, at least {least}")


def _place(name: str, text: str) -> Place:
    if not text.startswith("{"):
        return text
    offsets = _parsed(name, text)
    assert isinstance(offsets, dict)
    if all(type(each) is int and 0 <= each < 1 << 63 for each in offsets.values()):
        return {str(StreamName.parse(stream)): offset for stream, offset in offsets.items()}
    raise IllegalArgument(argument=f"{name} {text!r}", rule="each stream has an offset, from 0")


def _ranges(text: str) -> tuple[SourceRange, ...]:
    listed = _parsed("ranges", text)
    try:
        return tuple(_range(**each) for each in listed)  # type: ignore[attr-defined]
    except TypeError:
        rule = "a list of objects with stream, storage_topic_id, partition, start and end"
        raise IllegalArgument(argument="option 'ranges'", rule=rule) from None


def _range(stream: str, storage_topic_id: int, partition: int, start: int, end: int) -> SourceRange:
    StreamName.parse(stream)
    numbers = (storage_topic_id, partition, start, end)
    if not all(type(each) is int and each >= 0 for each in numbers) or start > end:
        raise IllegalArgument(
            argument=f"a range of {stream}", rule="its numbers count from 0, and it ends behind it"
        )
    return SourceRange(stream, storage_topic_id, partition, start, end)


def _parsed(name: str, text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as broken:
        raise IllegalArgument(argument=f"option {name!r}", rule=f"JSON ({broken})") from broken

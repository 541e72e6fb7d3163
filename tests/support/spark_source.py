"""Topics for tests of the data source `dss`, and their records as a client without Spark reads
them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dss_client.sync

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDS = 600
STARTS_MAX = 20
LATE = "Python worker failed to connect back"

Row = tuple[Any, ...]
"""Stream, offset, subject, key, payload and headers of a record."""


@dataclass(frozen=True)
class Filled:
    """A topic with records, at a daemon."""

    endpoint: str
    topic: str
    rows: list[Row]
    """Of each record, sorted."""

    def read(self, spark: "SparkSession", **options: object) -> "DataFrame":
        """A DataFrame of it."""
        source = spark.read.format("dss").option("endpoint", self.endpoint)
        return source.options(**{"topic": self.topic, **options}).load()


def at_last(run: Callable[[], object]) -> None:
    """Run a query; repeat it if it started too late: Spark waits ten seconds, however busy it is.

    A query that was late has read nothing.
    """
    from pyspark.errors import StreamingQueryException

    for _ in range(STARTS_MAX):
        try:
            run()
        except StreamingQueryException as failed:
            if LATE not in str(failed):
                raise
        else:
            return
    raise AssertionError(LATE)


def filled(client: dss_client.sync.Client, topic: str) -> Filled:
    """A new topic with records with and without key and headers, in frames of both layouts."""
    client.topics.create(topic, partitions=2)
    produce(client, topic, range(5))
    produce(client, topic, range(5, RECORDS))
    return Filled(str(client.endpoint), topic, rows_of(client, topic))


def produce(client: dss_client.sync.Client, topic: str, numbers: range) -> None:
    """Records with these numbers, all stored."""
    with client.producer(topic) as producer:
        for number in numbers:
            producer.enqueue(
                b"%d" % number,
                key=None if number % 7 == 0 else b"k%d" % (number % 40),
                subject=f"{topic}/{'eu' if number % 3 else 'us'}/{number % 5}",
                headers=[("seen", b"1"), ("seen", b"2")] if number % 11 == 0 else None,
            )
        producer.flush()


def rows_of(client: dss_client.sync.Client, topic: str) -> list[Row]:
    """The topic's records as a client reads them."""
    return sorted(
        (
            record.stream,
            record.offset,
            record.subject,
            record.key,
            record.payload,
            tuple(record.headers),
        )
        for record in client.read(f"{topic}/#")
    )


def taken(frame: "DataFrame") -> list[Row]:
    """The rows of a DataFrame in the form of `rows_of`."""
    columns = ("stream", "offset", "subject", "key", "payload", "headers")
    return sorted(
        (
            row.stream,
            row.offset,
            row.subject,
            None if row.key is None else bytes(row.key),
            bytes(row.payload),
            tuple((header.name, bytes(header.value)) for header in row.headers),
        )
        for row in frame.select(*columns).collect()
    )

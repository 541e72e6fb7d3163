"""What the demo makes of its members' results: what a kill cost, and whether the sums are right.

Invariant: a flight is counted once, by its stream and offset, however often it was written out.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

console = Console(soft_wrap=True, highlight=False)


class DemoFailedError(Exception):
    """What the demo promises did not happen."""


def say(text: str) -> None:
    """One step, as a line."""
    console.print(f"[bold green]*[/] {text}")


@dataclass(frozen=True, slots=True)
class Result:
    """One line that a member has written out."""

    member: str
    stream: str
    offset: int
    carrier: str
    delay: int | None
    redelivered: bool
    received_at_s: float


def read_results(files: Mapping[str, Path]) -> list[Result]:
    """What all members have written out, the dead one too."""
    results = []
    for member, file in files.items():
        for line in file.read_text().splitlines():
            stream, offset, carrier, delay, again, received_at = line.split(",")
            results.append(
                Result(
                    member=member,
                    stream=stream,
                    offset=int(offset),
                    carrier=carrier,
                    delay=int(delay) if delay else None,
                    redelivered=again == "1",
                    received_at_s=float(received_at),
                )
            )
    return results


@dataclass(frozen=True, slots=True)
class Kill:
    """What a member was in the middle of when it was killed."""

    member: str
    at_s: float
    orphaned: frozenset[str]
    """The streams that it read."""
    stream: str
    first: int
    last: int
    """What it had written out but not acknowledged."""


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A stream of the dead member, and who reads it since when."""

    stream: str
    heir: str
    after_s: float


def show_taken_over(streams: Sequence[TakenOver]) -> None:
    """Print a row a stream."""
    table = Table("STREAM", "NOW READ BY", box=box.SIMPLE)
    table.add_column("AFTER", justify="right")
    for each in sorted(streams, key=lambda each: each.after_s):
        table.add_row(each.stream, each.heir, f"{each.after_s * 1000:,.0f} ms")
    console.print(table)


def explain_copies(results: Sequence[Result], kill: Kill) -> None:
    """Say what was delivered again and what was done twice, and why these are not the same.

    Raises:
        DemoFailedError: held records did not come again, or a copy came unmarked.
    """
    written: defaultdict[tuple[str, int], list[Result]] = defaultdict(list)
    for result in sorted(results, key=lambda result: result.received_at_s):
        written[result.stream, result.offset].append(result)
    copies = [copy for same in written.values() for copy in same[1:]]
    if not all(copy.redelivered for copy in copies):
        raise DemoFailedError("a flight was delivered again without a mark")
    held = {(kill.stream, offset) for offset in range(kill.first, kill.last + 1)}
    if not held <= {(copy.stream, copy.offset) for copy in copies}:
        raise DemoFailedError("held records did not come again")
    marked = sum(result.redelivered for result in results)
    say(
        f"{marked:,} deliveries were marked redelivered, perhaps seen before: they were on\n"
        "  their way to somebody at a kill, and nobody else knows how far it had come."
    )
    say(
        f"{len(copies):,} of them were written out twice: handled, but their ack was not stored.\n"
        f"  {kill.member}'s {len(held)} are among them, and every second copy was marked."
    )


def compare(results: Sequence[Result], flights: pa.Table) -> None:
    """Show the sums per carrier and check them against the file."""
    unique = {(result.stream, result.offset): result for result in results}
    counts: Counter[str] = Counter()
    delays: defaultdict[str, int] = defaultdict(int)
    for result in unique.values():
        counts[result.carrier] += 1
        delays[result.carrier] += result.delay or 0
    aggregates = flights.group_by("carrier").aggregate([([], "count_all"), ("arr_delay", "sum")])
    expected = {
        row["carrier"]: (row["count_all"], row["arr_delay_sum"]) for row in aggregates.to_pylist()
    }
    show_totals(counts, delays, expected)
    if {carrier: (counts[carrier], delays[carrier]) for carrier in counts} != expected:
        raise DemoFailedError("the sums differ from those of the file")
    say(f"{len(unique):,} flights, each counted once: the sums equal pyarrow's of the file.")


def show_totals(
    counts: Mapping[str, int],
    delays: Mapping[str, int],
    expected: Mapping[str, tuple[int, int]],
) -> None:
    """Print a row a carrier, and the totals."""
    table = Table("CARRIER", box=box.SIMPLE, show_footer=True)
    table.columns[0].footer = "total"
    table.add_column("FLIGHTS", f"{sum(counts.values()):,}", justify="right")
    table.add_column("DELAY, MINUTES", f"{sum(delays.values()):,}", justify="right")
    table.add_column("IN THE FILE", justify="right")
    for carrier, (count, delay) in sorted(expected.items()):
        same = (counts.get(carrier), delays.get(carrier)) == (count, delay)
        verdict = "[green]same[/]" if same else f"[red]{count:,} / {delay:,}[/]"
        table.add_row(
            carrier, f"{counts.get(carrier, 0):,}", f"{delays.get(carrier, 0):,}", verdict
        )
    console.print(table)

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


def tell_of_the_kill(results: Sequence[Result], kill: Kill) -> None:
    """Say what the kill cost, and check that the held records came again, marked."""
    elsewhere = [result for result in results if result.member != kill.member]
    marked = {
        result.offset for result in elsewhere if result.redelivered and result.stream == kill.stream
    }
    written_out = {
        result.offset
        for result in results
        if result.member == kill.member and result.stream == kill.stream
    }
    held = set(range(kill.first, kill.last + 1))
    if not held <= written_out & marked:
        raise DemoFailedError("held records did not come again, marked as redelivered")
    after_s = min(
        result.received_at_s - kill.at_s
        for result in elsewhere
        if result.stream in kill.orphaned and result.received_at_s > kill.at_s
    )
    again = sum(result.redelivered for result in elsewhere)
    say(f"Redelivered: {again:,} records, every one of those held among them.")
    say(f"From the kill to the first delivery elsewhere: {after_s * 1000:.0f} ms.")


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
    twice = len(results) - len(unique)
    say(f"{len(unique):,} flights counted once each; {twice:,} results were written twice.")
    if {carrier: (counts[carrier], delays[carrier]) for carrier in counts} != expected:
        raise DemoFailedError("the sums differ from those of the file")
    say("The sums equal pyarrow's group_by of the file.")


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

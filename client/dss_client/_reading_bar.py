"""A bar on stderr that shows how far a reading is, for people.

Invariant: it is drawn on a terminal or in a notebook, and nowhere else; it changes nothing of what
is read. Loaded only when asked for.
"""

from typing import TYPE_CHECKING, Self

from dss_client.topics import Topics
from dss_core.errors import LibraryMissing
from dss_core.filters import TopicFilter

if TYPE_CHECKING:
    from dss_api.v1 import log_pb2
    from dss_client._connection import Connection
    from dss_client.record import Batch


class ReadingBar:
    """The bar of one reading; made by `begun`."""

    def __init__(self, bounds: dict[str, tuple[int, int]], records_max: int | None) -> None:
        """A bar that begins at once.

        Raises:
            LibraryMissing: there is no rich.
        """
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        except ImportError as missing:
            raise LibraryMissing(library="rich", purpose="A progress bar") from missing

        console = Console(stderr=True)
        shown = console.is_terminal or console.is_jupyter
        self._bounds = bounds
        self._next: dict[str, int] = {}
        self._begun: dict[str, int] = {}
        self._by_count = records_max is not None
        self._records = 0
        columns = (BarColumn(), TextColumn("{task.fields[records]:,} records"), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, disable=not shown, transient=False)
        total = records_max if self._by_count else self._offsets()
        self._bar = self._progress.add_task("reading", total=total or None, records=0)
        self._progress.start()

    @classmethod
    async def begun(cls, connection: "Connection", request: "log_pb2.ReadRequest") -> Self:
        """A bar for a request: it counts offsets if the reading ends by itself, else records.

        Raises:
            LibraryMissing: there is no rich.
            DssError: the daemon does not answer.
        """
        bounds = {} if request.follow else await _bounds(connection, request)
        most = request.records_max if request.HasField("records_max") else None
        return cls(bounds, most)

    def advance(self, batch: "Batch") -> None:
        """A batch is handed out."""
        stream, offsets = batch.stream, batch.offsets
        self._records += len(batch)
        self._begun.setdefault(stream, offsets[0])
        self._next[stream] = offsets[-1] + 1
        if self._by_count:
            self._progress.update(self._bar, completed=self._records, records=self._records)
            return
        done = sum(end - self._begun[each] for each, end in self._next.items())
        total = self._offsets() or None
        self._progress.update(self._bar, completed=done, total=total, records=self._records)

    def end(self, *, complete: bool) -> None:
        """The reading ended; ``complete``: to its end, else it was left before."""
        if complete:
            done = self._records if self._by_count else self._offsets()
            self._progress.update(self._bar, completed=done or 1, total=done or 1)
        self._progress.stop()

    def _offsets(self) -> int:
        """How many offsets are read, from where each stream begins, filtered ones included."""
        return sum(
            max(end - self._begun.get(each, start), 0)
            for each, (start, end) in self._bounds.items()
        )


async def _bounds(
    connection: "Connection", request: "log_pb2.ReadRequest"
) -> dict[str, tuple[int, int]]:
    """The first and the next offset of every stream that is read."""
    topics = Topics(connection)
    wanted = TopicFilter.parse(request.filter) if request.filter else None
    bounds = {}
    for summary in await topics.list():
        patterns = map(TopicFilter.parse, summary.topic.patterns)
        if wanted is not None and not any(wanted.overlaps(pattern) for pattern in patterns):
            continue
        described = await topics.describe(summary.topic.name)
        for storage in described.storage_topics:
            for each in storage.streams:
                name = f"{described.name}/{storage.ordinal}/{each.partition}"
                if not request.HasField("stream") or name == request.stream:
                    bounds[name] = each.start, each.end
    return bounds

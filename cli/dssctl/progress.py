"""Progress of long work, on stderr: a bar on a terminal, else a line now and then.

Invariant: short work prints no lines, and none are printed where a program reads the output.
"""

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dssctl.output import note
from dssctl.settings import Settings

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

PROGRESS_AFTER_S = 1.0
"""A bar that comes and goes sooner is noise."""

PROGRESS_LINE_S = 10.0
"""Between two lines of progress where there is no terminal: a log of an hour has 360 of them."""


@contextmanager
def reading(settings: Settings, descriptor: int, title: str) -> Iterator[Callable[[int], None]]:
    """Show how much of a file was read; yields a function to call with each number of bytes."""
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        yield lambda _size: None
        return
    if not sys.stderr.isatty():
        yield _Read(settings, title, facts.st_size).take
        return
    from rich.progress import DownloadColumn, TimeRemainingColumn

    with _shown(settings, DownloadColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task(title, total=facts.st_size)
        yield lambda size: progress.update(task, advance=size)


@contextmanager
def settling(
    settings: Settings, title: str, parts: str = "streams"
) -> Iterator[Callable[[int, int], None]]:
    """Show how many parts are done; yields a function to call with done and total."""
    said = "{:,} of {:,} " + parts
    if (told := _without_bar(settings, title, said.format)) is not None:
        yield told
        return
    from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn

    columns = (MofNCompleteColumn(), TextColumn(parts), TimeElapsedColumn())
    with _bar(settings, title, *columns) as show:
        yield show


@contextmanager
def copying(settings: Settings, title: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many bytes have come; yields a function to call with that and the total."""
    if (told := _without_bar(settings, title, _share)) is not None:
        yield told
        return
    from rich.progress import DownloadColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with _bar(settings, title, *columns, transient=True) as show:
        yield show


@contextmanager
def scanning(settings: Settings, title: str) -> Iterator[Callable[[int, int], None]]:
    """Show how far a scan is; yields a function to call with the offsets done and the total."""
    if (told := _without_bar(settings, title, _share)) is not None:
        yield told
        return
    from rich.progress import TaskProgressColumn, TimeRemainingColumn

    with _bar(settings, title, TaskProgressColumn(), TimeRemainingColumn()) as show:
        yield show


@contextmanager
def looking(settings: Settings, title: str) -> Iterator[Callable[[int, int], None]]:
    """Show how far a look at records is, once it takes long; yields as `scanning` does.

    It is gone when it is done, so that what is printed then stands alone.
    """
    if (told := _without_bar(settings, title, _share)) is not None:
        yield told
        return
    bar = _LateBar(settings, title)
    try:
        yield bar.show
    finally:
        bar.stop()


@contextmanager
def lingering(settings: Settings, title: str) -> Iterator[Callable[[str], None]]:
    """Show a long wait; yields a function to call with the present state."""
    if not sys.stderr.isatty():
        lines = _Lines(settings, title)
        yield lambda standing: lines.tell(lambda: standing)
        return
    if settings.machine_readable:
        yield lambda _standing: None
        return
    from rich.progress import TimeElapsedColumn

    with _shown(settings, TimeElapsedColumn(), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda standing: progress.update(task, description=f"{title}: {standing}")


def _without_bar(
    settings: Settings, title: str, said: Callable[[int, int], str]
) -> Callable[[int, int], None] | None:
    """The function to call with done and total if there is no bar; None if there is one."""
    if not sys.stderr.isatty():
        lines = _Lines(settings, title)
        return lambda done, every: lines.tell(lambda: said(done, every))
    if settings.machine_readable:
        return lambda _done, _all: None
    return None


@contextmanager
def _bar(
    settings: Settings, title: str, *columns: "ProgressColumn", transient: bool = False
) -> Iterator[Callable[[int, int], None]]:
    with _shown(settings, *columns, transient=transient) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, every: progress.update(task, completed=done, total=every or None)


class _Lines:
    """A line of progress now and then, where there is no bar."""

    def __init__(self, settings: Settings, title: str) -> None:
        self._settings = settings
        self._title = title
        self._next_at = time.monotonic() + PROGRESS_LINE_S
        self._told = ""

    def tell(self, standing: Callable[[], str]) -> None:
        """Print the line if it is time and the line differs from the last one."""
        now = time.monotonic()
        if now < self._next_at or self._settings.machine_readable:
            return
        said = standing()
        if said != self._told:
            self._told, self._next_at = said, now + PROGRESS_LINE_S
            note(self._settings, f"{self._title}: {said}")


class _Read:
    """How much of a file was read, in lines."""

    def __init__(self, settings: Settings, title: str, size: int) -> None:
        self._lines = _Lines(settings, title)
        self._size = size
        self._taken = 0

    def take(self, size: int) -> None:
        """So much more."""
        self._taken += size
        self._lines.tell(lambda: _share(self._taken, self._size))


def _share(done: int, every: int) -> str:
    if not every:
        return f"{done:,}"
    return f"{100 * done // every} % ({done:,} of {every:,})"


class _LateBar:
    """A bar that appears only once the work takes longer than a person waits without feedback."""

    def __init__(self, settings: Settings, title: str) -> None:
        self._settings = settings
        self._title = title
        self._begins_at = time.monotonic() + PROGRESS_AFTER_S
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def show(self, done: int, every: int) -> None:
        """So many of so many."""
        if self._progress is None:
            if time.monotonic() < self._begins_at:
                return
            self._begin()
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, total=every or None)

    def stop(self) -> None:
        """Take it away."""
        if self._progress is not None:
            self._progress.stop()

    def _begin(self) -> None:
        from rich.progress import TaskProgressColumn, TimeRemainingColumn

        columns = (TaskProgressColumn(), TimeRemainingColumn())
        self._progress = _shown(self._settings, *columns, transient=True)
        self._task = self._progress.add_task(self._title, total=None)
        self._progress.start()


def _shown(settings: Settings, *columns: "ProgressColumn", transient: bool = False) -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True, no_color=not settings.coloured(sys.stderr))
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *columns,
        console=console,
        transient=transient,
        # Data that is printed meanwhile belongs on stdout, not above the bar.
        redirect_stdout=False,
    )

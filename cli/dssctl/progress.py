"""Progress bars on stderr, where a person looks at them and the end is known."""

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dssctl.limits import PROGRESS_AFTER_S
from dssctl.settings import Settings

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID


@contextmanager
def reading(settings: Settings, descriptor: int, title: str) -> Iterator[Callable[[int], None]]:
    """Show how much of a file was read; yields what to call with each number of bytes."""
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode) or not sys.stderr.isatty():
        yield lambda _size: None
        return
    from rich.progress import DownloadColumn, TimeRemainingColumn

    with _shown(settings, DownloadColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task(title, total=facts.st_size)
        yield lambda size: progress.update(task, advance=size)


@contextmanager
def settling(
    settings: Settings, title: str, parts: str = "streams"
) -> Iterator[Callable[[int, int], None]]:
    """Show how many parts of something are done; yields what to call with done and all."""
    if not sys.stderr.isatty() or settings.machine_readable:
        yield lambda _done, _all: None
        return
    from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn

    columns = (MofNCompleteColumn(), TextColumn(parts), TimeElapsedColumn())
    with _shown(settings, *columns) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, every: progress.update(task, completed=done, total=every or None)


@contextmanager
def scanning(settings: Settings, title: str) -> Iterator[Callable[[int, int], None]]:
    """Show how far a scan is; yields what to call with offsets done and all."""
    if not sys.stderr.isatty() or settings.machine_readable:
        yield lambda _done, _all: None
        return
    from rich.progress import TaskProgressColumn, TimeRemainingColumn

    with _shown(settings, TaskProgressColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, every: progress.update(task, completed=done, total=every or None)


@contextmanager
def looking(settings: Settings, title: str) -> Iterator[Callable[[int, int], None]]:
    """Show how far a look at records is, once it takes long; yields as `scanning` does.

    It is gone when it is done, so that what is printed then stands alone.
    """
    if not sys.stderr.isatty() or settings.machine_readable:
        yield lambda _done, _all: None
        return
    bar = _LateBar(settings, title)
    try:
        yield bar.show
    finally:
        bar.stop()


@contextmanager
def lingering(settings: Settings, title: str) -> Iterator[Callable[[str], None]]:
    """Show what is waited for, once that takes long; yields what to call with how it stands."""
    if not sys.stderr.isatty() or settings.machine_readable:
        yield lambda _standing: None
        return
    from rich.progress import TimeElapsedColumn

    with _shown(settings, TimeElapsedColumn(), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda standing: progress.update(task, description=f"{title}: {standing}")


class _LateBar:
    """A bar that begins when something has taken longer than a person waits without a word."""

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

"""Progress bars on stderr, where a person looks at them and the end is known."""

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dssctl.settings import Settings

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


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
def settling(settings: Settings, title: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many streams of an operation are done; yields what to call with done and all."""
    if not sys.stderr.isatty() or settings.machine_readable:
        yield lambda _done, _all: None
        return
    from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn

    columns = (MofNCompleteColumn(), TextColumn("streams"), TimeElapsedColumn())
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


def _shown(settings: Settings, *columns: "ProgressColumn") -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True, no_color=not settings.coloured(sys.stderr))
    return Progress(TextColumn("{task.description}"), BarColumn(), *columns, console=console)

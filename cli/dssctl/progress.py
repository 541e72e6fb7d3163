"""A progress bar on stderr, where a person looks at it and the end is known."""

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dssctl.settings import Settings


@contextmanager
def reading(settings: Settings, descriptor: int, title: str) -> Iterator[Callable[[int], None]]:
    """Show how much of a file was read; yields what to call with each number of bytes."""
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode) or not sys.stderr.isatty():
        yield lambda _size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, no_color=not settings.coloured(sys.stderr))
    title_column = TextColumn("{task.description}")
    columns = (title_column, BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=facts.st_size)
        yield lambda size: progress.update(task, advance=size)

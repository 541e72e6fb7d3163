"""``dssctl man``: the manual, also where no package manager put it on the manual's path."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from shlex import join
from typing import Annotated

import typer

from dssctl.installed import installed
from dssctl.output import note
from dssctl.pager import pager, show
from dssctl.settings import Settings
from dssctl.tree import Command, settings_of, verb_alone

app = verb_alone("man")

_PAGES = installed("man")


@app.command("man", cls=Command)
def show_page(
    context: typer.Context,
    page: Annotated[
        str,
        typer.Argument(
            metavar="PAGE", help="groups, dssctl-groups, dssd, dssd.toml, errors.7, ..."
        ),
    ] = "dssctl",
    path: Annotated[
        bool, typer.Option("--path", help="Print the folder of all pages, for MANPATH.")
    ] = False,
) -> None:
    """Show a page of the manual; without a name, that of dssctl.

    For man to find the pages by itself, set MANPATH="$(dssctl man --path):".
    """
    if path:
        sys.stdout.write(f"{_PAGES}\n")
        return
    found = _found(page)
    if found is None:
        names = sorted({each.stem for each in _pages()})
        near = get_close_matches(page, names, n=3) or get_close_matches(f"dssctl-{page}", names)
        meant = f"did you mean {' or '.join(near)}" if near else f"there are {', '.join(names)}"
        raise typer.BadParameter(f"there is no page '{page}'; {meant}.", ctx=context)
    _show(settings_of(context), found)


def _pages() -> Iterator[Path]:
    return (each for folder in sorted(_PAGES.iterdir()) for each in sorted(folder.iterdir()))


def _found(page: str) -> Path | None:
    """A page by its name, with or without its program and its section; the first section wins."""
    for name in (page, f"dssctl-{page}"):
        for each in _pages():
            if name in {each.name, each.stem}:
                return each
    return None


def _show(settings: Settings, page: Path) -> None:
    reader = _reader(page)
    if reader is None:
        note(settings, "there is no man, mandoc or groff here, so this is the page's source")
        show(settings, page.read_text())
    elif sys.stdout.isatty():
        # If no pager is named, man finds one in its own way.
        wanted = {} if settings.pager is None else {"MANPAGER": join(pager(settings) or ["cat"])}
        environment = {**os.environ, **wanted}
        _raise_failure(subprocess.run(reader, check=False, env=environment).returncode)
    else:
        done = subprocess.run(
            reader, check=False, stdout=subprocess.PIPE, env={**os.environ, "MANPAGER": "cat"}
        )
        sys.stdout.write(done.stdout.decode(errors="replace"))
        _raise_failure(done.returncode)


def _raise_failure(exit_code: int) -> None:
    if exit_code:
        raise typer.Exit(exit_code)


def _reader(page: Path) -> list[str] | None:
    """A command that shows a page on a terminal, or prints it if there is none."""
    if shutil.which("man"):
        # Other systems take a path with a slash as a file without the option.
        return ["man", *(["-l"] if sys.platform == "linux" else []), str(page)]
    if shutil.which("mandoc"):
        return ["mandoc", "-a" if sys.stdout.isatty() else "-Tutf8", str(page)]
    if shutil.which("groff"):
        return ["groff", "-mandoc", "-Tutf8", "-P-c", str(page)]
    return None

"""``dssctl completion``: the scripts with which shells complete its words."""

import os
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dss_core.errors import FileUnwritable
from dssctl.installed import installed
from dssctl.output import note
from dssctl.tree import Command, settings_of, verb_alone

app = verb_alone("completion")

_SCRIPTS = installed("completions")


class Shell(StrEnum):
    """Who completes."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_FILES = {Shell.BASH: "dssctl", Shell.ZSH: "_dssctl", Shell.FISH: "dssctl.fish"}


@app.command(cls=Command)
def completion(
    context: typer.Context,
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
    install: Annotated[
        bool,
        typer.Option("--install", help="Install it in this user's folders, where the shell looks."),
    ] = False,
) -> None:
    """Print the script with which a shell completes commands, options and the names of things.

    For this shell only: eval "$(dssctl completion bash)". Names of topics, groups, members,
    sessions and operations are those that a list showed in the last seconds, or are asked for.
    """
    script = (_SCRIPTS / _FILES[shell]).read_text()
    if not install:
        sys.stdout.write(script)
        return
    path = _place_of(shell)
    _write(path, script)
    note(settings_of(context), f"wrote {path}; {_how_to_begin(shell, path)}")


def _place_of(shell: Shell) -> Path:
    """Where the shell finds it by itself, or almost."""
    match shell:
        case Shell.BASH:
            own = os.environ.get("BASH_COMPLETION_USER_DIR")
            folder = Path(own) if own else _folder("XDG_DATA_HOME", ".local/share/bash-completion")
            return folder / "completions" / _FILES[shell]
        case Shell.ZSH:
            return _folder("XDG_DATA_HOME", ".local/share/zsh") / "site-functions" / _FILES[shell]
        case Shell.FISH:
            return _folder("XDG_CONFIG_HOME", ".config/fish") / "completions" / _FILES[shell]


def _folder(variable: str, below_home: str) -> Path:
    """A shell's folder below the one that the variable names, or below the usual one."""
    stated = os.environ.get(variable, "")
    if stated.startswith("/"):
        return Path(stated) / Path(below_home).name
    return Path.home() / below_home


def _write(path: Path, script: str) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(script)
        beside.replace(path)
    except OSError as failed:
        raise FileUnwritable(path=path, reason=failed.strerror) from failed


def _how_to_begin(shell: Shell, path: Path) -> str:
    if shell is Shell.BASH:
        again = f"without the package bash-completion add to ~/.bashrc: . {shlex.quote(str(path))}"
        return f"it works in the next shell; {again}"
    if shell is Shell.ZSH:
        folder = shlex.quote(str(path.parent))
        return f"add to ~/.zshrc, before compinit: fpath=({folder} $fpath)"
    return "it works in the next shell"

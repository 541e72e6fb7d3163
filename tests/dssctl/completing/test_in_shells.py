"""The completion scripts in the shells themselves: what one key makes of a line."""

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pexpect
import pytest

from dssctl.completing.names_kept import folder_for, keep
from support.prerequisites import BASH, FISH, ZSH, need_program

REPO = Path(__file__).resolve().parents[3]
SCRIPTS = REPO / "completions"
TIMEOUT_S = 60

COMPLETED = [
    ("dssctl gro", "dssctl groups"),
    ("dssctl groups rebal", "dssctl groups rebalance"),
    ("dssctl groups pause aud", "dssctl groups pause audit"),
    ("dssctl group rebal", "dssctl group rebalance"),
    ("dssctl -o json topic descr", "dssctl -o json topic describe"),
    ("dssctl groups pause b", "dssctl groups pause bill"),
    ("dssctl groups pause twice@orders/e", "dssctl groups pause twice@orders/eu"),
    ("dssctl groups pause --unt", "dssctl groups pause --until"),
    ("dssctl groups pause --dry", "dssctl groups pause --dry-run"),
    ("dssctl groups ls --color ne", "dssctl groups ls --color never"),
    ("dssctl groups ls --output=ya", "dssctl groups ls --output=yaml"),
    ("dssctl -o json --no-input topi", "dssctl -o json --no-input topics"),
    ("dssctl grants transfer audit orders/0/", "dssctl grants transfer audit orders/0/3"),
    ("dssctl grants transfer audit orders/0/3 --to ann", "... --to anna-1"),
    ("dssctl ops show 1", "dssctl ops show 12"),
    ("dssctl jobs wait ", "dssctl jobs wait load-7"),
    ("dssctl records skip aud", "dssctl records skip audit"),
    ("dssctl records skip audit ", "dssctl records skip audit orders/0/3"),
    ("dssctl records skip audit orders/0/3 --ke", "dssctl records skip audit orders/0/3 --key"),
    ("dssctl watch groups mem", "dssctl watch groups members"),
    ("dssctl errors explain DSS110", "dssctl errors explain DSS110"),
    ("dssctl ops apply /etc/passw", "dssctl ops apply /etc/passwd"),
    ("dssctl topics create ord", "dssctl topics create ord"),
]
"""What is typed, and the line behind the key; where several words fit, up to where they part."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Names are kept already, of a daemon that is away, and `dssctl` is on the path."""
    folder = tmp_path_factory.mktemp("shells")
    program = folder / "dssctl"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m dssctl "$@"\n')
    program.chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if name != "ZDOTDIR"}
    environment = inherited | {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "DSSCTL_ENDPOINT": "unix:/nowhere/s",
        "TERM": "dumb",
    }
    names = {
        "topics": ["orders"],
        "streams": ["orders/0/3"],
        "groups": ["audit", "billing", "billboard", "twice@orders/eu", "twice@orders/us", "$(x)"],
        "borrowers": ["anna-1"],
        "ops": ["12"],
        "jobs": ["load-7"],
    }
    for kind, each in names.items():
        keep(folder_for((), environment), kind, ((name, "about it") for name in each))
    return environment


def expected_of(line: str, completed: str) -> str:
    return completed.replace("...", line.rpartition(" --to")[0])


def shell(name: str, *arguments: str, environment: dict[str, str]) -> "pexpect.spawn[str]":
    return pexpect.spawn(
        need_program(name),
        list(arguments),
        encoding="utf-8",
        timeout=TIMEOUT_S,
        dimensions=(24, 400),
        env=environment,
        echo=False,
    )


def completions_of(child: "pexpect.spawn[str]") -> Iterator[tuple[str, str, str]]:
    """Each line as typed, as it should become, and as it became; the key shows that and clears."""
    for line, completed in COMPLETED:
        child.send(line + "\t\x18s")
        child.expect("LINE<([^\r\n]*)>")
        yield line, expected_of(line, completed), child.match.group(1)  # type: ignore[union-attr]


def test_bash_completes_words_options_values_and_names(environment: dict[str, str]) -> None:
    child = shell(BASH, "--norc", "--noprofile", "-i", environment=environment)
    child.sendline(
        "PS1=; bind 'set enable-bracketed-paste off'; bind 'set bell-style none';"
        f". {SCRIPTS}/dssctl;"
        """show() { printf 'LINE<%s>\\n' "${READLINE_LINE% }"; READLINE_LINE=; };"""
        """bind -x '"\\C-xs": show'; echo rea''dy"""
    )
    child.expect("ready\r\n")
    for line, wanted, became in completions_of(child):
        assert became == wanted.rstrip(), line
    child.sendline("exit")
    child.expect(pexpect.EOF)


def test_zsh_completes_words_options_values_and_names(environment: dict[str, str]) -> None:
    child = shell(ZSH, "-f", "-i", environment=environment)
    # One key does all: zsh lists nothing while more was typed already.
    child.sendline(
        f"PS1=; unset zle_bracketed_paste; setopt no_beep; fpath=({SCRIPTS} $fpath);"
        "autoload -Uz compinit; compinit -D;"
        "both() { zle expand-or-complete; print -r -- $'\\n'\"LINE<${BUFFER% }>\"; BUFFER=; };"
        "zle -N both; bindkey '^I' both; echo rea''dy"
    )
    child.expect("ready\r\n")
    for line, completed in COMPLETED:
        child.send(line + "\t")
        child.expect("LINE<([^\r\n]*)>")
        became = child.match.group(1)  # type: ignore[union-attr]
        assert became == expected_of(line, completed), line
    child.sendline("exit")
    child.expect(pexpect.EOF)


def test_fish_offers_words_options_values_and_names(environment: dict[str, str]) -> None:
    lines = [line for line, _ in COMPLETED]
    program = f"source {SCRIPTS}/dssctl.fish\n" + "\n".join(
        f"echo LINE; complete -C {fish_quoted(line)}" for line in lines
    )
    done = subprocess.run(
        [need_program(FISH), "--no-config", "-c", program],
        env=environment,
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stderr == ""
    offers = done.stdout.split("LINE\n")[1:]
    for (line, completed), offered in zip(COMPLETED, offers, strict=True):
        words = [each.partition("\t")[0] for each in offered.splitlines()]
        before, _, typed = line.rpartition(" ")
        common = common_beginning(words) or typed
        assert f"{before} {common}" == expected_of(line, completed), line


def common_beginning(words: list[str]) -> str:
    """Up to where they part."""
    columns = zip(*words, strict=False)
    return "".join(each[0] for each in takewhile(lambda each: len(set(each)) == 1, columns))


def fish_quoted(line: str) -> str:
    return "'" + line.replace("'", "\\'") + "'"


def test_a_name_has_words_about_it_in_fish(environment: dict[str, str]) -> None:
    program = f"source {SCRIPTS}/dssctl.fish; complete -C 'dssctl ops show '"
    done = subprocess.run(
        [need_program(FISH), "--no-config", "-c", program],
        env=environment,
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout == "12\tabout it\n"

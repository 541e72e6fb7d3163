"""What a terminal has no room for."""

import sys

import pexpect
import pytest

from support.dssctl_call import environment

LINES = 24
TIMEOUT_S = 60


def shown(*arguments: str, **variables: str) -> str:
    """What a terminal of 24 lines gets of one command."""
    own = {name: value for name, value in environment().items() if name not in {"PAGER", "LESS"}}
    child = pexpect.spawn(
        sys.executable,
        ["-m", "dssctl", *arguments],
        dimensions=(LINES, 100),
        timeout=TIMEOUT_S,
        encoding="utf-8",
        env={**own, "TERM": "xterm", **variables},
    )
    try:
        child.expect(pexpect.EOF)
        return str(child.before)
    finally:
        child.close()


def test_a_list_that_is_longer_than_the_terminal_goes_through_the_pager_that_is_named() -> None:
    assert len(shown("errors", "ls", PAGER="head -n 2").splitlines()) == 2
    assert len(shown("errors", "ls", PAGER="cat", DSSCTL_PAGER="head -n 3").splitlines()) == 3
    assert len(shown("errors", "ls", "-X", "pager=head -n 4", PAGER="cat").splitlines()) == 4


@pytest.mark.parametrize("way", [("--no-pager",), ("-X", "pager=cat"), ("-o", "json")])
def test_who_wants_no_pager_has_the_whole_list(way: tuple[str, ...]) -> None:
    assert len(shown("errors", "ls", *way, PAGER="head -n 2").splitlines()) > LINES


def test_what_fits_the_terminal_is_printed() -> None:
    assert len(shown("errors", "ls", "--limit", "9", PAGER="head -n 2").splitlines()) > 9


def test_a_page_is_paged_as_a_list_is() -> None:
    assert len(shown("explain", PAGER="head -n 2").splitlines()) == 2


def test_a_pager_that_is_not_there_costs_nothing_but_a_note() -> None:
    told = shown("errors", "ls", PAGER="no-such-pager")
    assert "the pager no-such-pager cannot be run" in told
    assert len(told.splitlines()) > LINES


def test_a_pager_that_is_left_early_is_no_failure() -> None:
    assert "error" not in shown("errors", "ls", "--limit", "100", PAGER="true")

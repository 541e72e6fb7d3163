"""What a daemon does to its own process."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from dssd.addresses import parse_address
from dssd.life import End, How
from dssd.log_lines import LogFormat
from dssd.process import _announce, collect_seldom


@pytest.fixture
def full_collections() -> Iterator[list[int]]:
    """One item each time that all objects are looked at."""
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            seen.append(info["generation"])

    before = gc.get_threshold()
    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)
    gc.set_threshold(*before)


def test_a_growing_heap_is_not_looked_through_again_and_again(full_collections: list[int]) -> None:
    collect_seldom()
    assert gc.isenabled()
    kept: list[list[Any]] = [[] for _ in range(500_000)]
    assert full_collections == []
    assert len(kept) == 500_000


@pytest.mark.parametrize(("paste", "lines"), [(False, 1), (True, 2)])
def test_an_address_that_nobody_can_know_is_printed_to_be_pasted(
    paste: bool, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    _announce(
        (parse_address("unix:/tmp/a b/d.sock"),), End(How.UNKNOWN), LogFormat.TEXT, paste=paste
    )
    said = capsys.readouterr().err.splitlines()
    assert len(said) == lines
    if paste:
        assert said[1] == "export DSSCTL_ENDPOINT='unix:/tmp/a b/d.sock'"

"""What a watched list prints of what happened between two looks."""

from collections.abc import Iterator

import pytest

from dssctl.list_watch import Changes, change_kind
from dssctl.output import Column, Item, Kind
from dssctl.screen import Screen
from dssctl.settings import Settings

KIND = Kind(
    "Grant",
    (Column("stream", "STREAM"), Column("lag", "LAG", right=True)),
    lambda item: str(item["stream"]),
)


def grant(stream: str, lag: int, *, group: str = "g", age_ms: int = 0) -> Item:
    return {"stream": stream, "group": group, "lag": lag, "state_age_ms": age_ms, "acks_1m": age_ms}


def told(changes: Iterator[Item]) -> list[tuple[object, object, object]]:
    return [(each["event"], each["stream"], each["lag"]) for each in changes]


def test_what_came_changed_and_went_is_told() -> None:
    changes = Changes(KIND)
    assert told(changes.to([grant("a", 1), grant("b", 2)])) == [
        ("ADDED", "a", 1),
        ("ADDED", "b", 2),
    ]
    assert told(changes.to([grant("a", 1), grant("b", 3)])) == [("CHANGED", "b", 3)]
    assert told(changes.to([grant("b", 3)])) == [("GONE", "a", 1)]


def test_an_age_or_a_rate_alone_is_no_change() -> None:
    changes = Changes(KIND)
    list(changes.to([grant("a", 1, age_ms=5)]))
    assert told(changes.to([grant("a", 1, age_ms=2_000)])) == []


def test_the_same_stream_of_two_groups_is_two_things() -> None:
    changes = Changes(KIND)
    first = told(changes.to([grant("a", 1), grant("a", 1, group="h")]))
    assert first == [("ADDED", "a", 1), ("ADDED", "a", 1)]
    assert told(changes.to([grant("a", 1)])) == [("GONE", "a", 1)]


def test_what_happened_stands_in_the_first_column() -> None:
    kind = change_kind(KIND)
    assert [column.header for column in kind.columns] == ["EVENT", "STREAM", "LAG"]


def test_a_screen_is_cut_to_the_terminal_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LINES", "8")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    screen = Screen(Settings(clock_us=lambda: 1_795_000_000_000_000), 2)
    screen.draw(["STREAM  LAG", *(f"a/0/{number}" for number in range(20))], "20 shown")
    first = capsys.readouterr().out
    assert first.startswith("\x1b[2J\x1b[H2026-11-18T11:06:40Z  every 2 s  20 shown  Ctrl-C ends")
    assert first.count("\n") == 6
    assert "... 17 more lines" in first
    screen.draw([])
    assert capsys.readouterr().out.startswith("\x1b[H2026")

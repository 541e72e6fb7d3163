import pytest
from hypothesis import given
from hypothesis import strategies as st

from dssctl.nouns.grants import GROUP_GRANT_KIND
from dssctl.output import Column, Item, Kind, Section, show_list, show_one
from dssctl.output.chosen_columns import with_columns
from dssctl.output.folding import folded, layout_of, places
from dssctl.settings import Format, Settings

TEXT = st.text(st.sampled_from("ab 東\u0301-"), max_size=90)

WORDY = Kind(
    "Wordy",
    (
        Column("name", "NAME"),
        Column("count", "COUNT", right=True),
        Column("note", "NOTE"),
    ),
    lambda item: str(item["name"]),
)
WIDE = Kind(
    "Wide",
    tuple(Column(f"f{at}", f"FIELD-{at}", right=at % 2 == 1) for at in range(8)),
    lambda item: str(item["f0"]),
)


def at_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output claims to be a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)


@given(st.lists(TEXT, min_size=1, max_size=6), st.integers(8, 100), st.booleans())
def test_no_line_is_wider_than_the_terminal_and_nothing_is_left_out(
    cells: list[str], columns: int, text_last: bool
) -> None:
    layout = layout_of([places(cell) for cell in cells], columns, text_last=text_last)
    assert [column for line in layout for column, _ in line] == list(range(len(cells)))
    shown = [""] * len(cells)
    for indent, pieces in folded(cells, layout):
        widths = dict(place for line in layout for place in line)
        assert indent + sum(widths[column] + 2 for column, _ in pieces) - 2 <= columns
        for column, piece in pieces:
            assert places(piece) <= max(2, widths[column])
            shown[column] += piece
    assert [each.replace(" ", "") for each in shown] == [each.replace(" ", "") for each in cells]


def test_a_row_that_is_wider_than_the_terminal_is_broken_between_cells(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_terminal(monkeypatch)
    item: Item = {f"f{at}": f"value-number-{at}" for at in range(8)}
    show_list(Settings(format=Format.TABLE), WIDE, [item, item])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert max(map(len, lines)) <= 80
    assert " ".join(lines[2:4]).split() == list(item.values())
    assert lines[2].index("value-number-1") + 14 == lines[0].index("FIELD-1") + 7


def test_where_rows_have_no_room_columns_without_any_value_are_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_terminal(monkeypatch)
    item: Item = {f"f{at}": f"a-long-value-{at}" if at in {0, 2, 5, 6} else None for at in range(8)}
    show_list(Settings(format=Format.TABLE), WIDE, [item, item])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["FIELD-0", "FIELD-2", "FIELD-5", "FIELD-6"],
        *[[str(value) for value in item.values() if value]] * 2,
    ]
    other: Item = {**item, "f3": "x"}
    show_list(Settings(format=Format.TABLE), WIDE, [item, other])
    assert "FIELD-3" in capsys.readouterr().out, "one row has a value there"


def test_columns_that_a_user_names_stay_without_any_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_terminal(monkeypatch)
    item: Item = {"stream": "orders/0/" + "9" * 70, "stall": ""}
    show_list(Settings(format=Format.TABLE), with_columns(GROUP_GRANT_KIND, "stream,stall"), [item])
    assert "STALLED" in capsys.readouterr().out


def test_where_rows_have_room_columns_without_any_value_stay(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_terminal(monkeypatch)
    item: Item = {f"f{at}": None for at in range(8)}
    show_list(Settings(format=Format.TABLE), WIDE, [{**item, "f0": "x" * 10}])
    monkeypatch.setattr("sys.stdout.isatty", lambda: False)
    show_list(Settings(format=Format.TABLE), WIDE, [{**item, "f0": "x" * 100}])
    assert capsys.readouterr().out.count("FIELD-7") == 2


def test_a_long_text_in_the_last_column_is_broken_between_its_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_terminal(monkeypatch)
    item: Item = {"name": "n", "count": 1, "note": "word " * 30 + "end", "parts": ["say " * 30]}
    show_list(Settings(format=Format.TABLE), WORDY, [item])
    show_one(Settings(format=Format.TABLE), WORDY, item, [Section("parts")])
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert "wor\n" not in printed
    assert printed.count("word") == 60


def test_where_no_terminal_is_a_row_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    item: Item = {"name": "n", "count": 1, "note": "word " * 30}
    show_list(Settings(format=Format.TABLE), WORDY, [item])
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_marks_take_no_place_of_their_own() -> None:
    assert [places(text) for text in ("e\u0301", "ที่", "कि", "日本", "❤\ufe0f")] == [1, 1, 2, 4, 2]

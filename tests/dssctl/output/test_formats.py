"""Every format against a golden file: one listing with awkward values, one single thing."""

import io
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dssctl.output import Column, Instant, Item, Kind, Section, growing, show_list, show_one
from dssctl.settings import Colour, Format, Settings

GOLDEN = Path(__file__).parent / "golden"
NOW_US = 1_795_000_000_000_000
WRITTEN = set(Format) - {Format.HELP}
"""Formats of items; help tells of their fields."""

THING = Kind(
    "Thing",
    (
        Column("name", "NAME", width=8),
        Column("count", "COUNT", right=True, width=6),
        Column("seen_at", "SEEN"),
        Column("state", "STATE", styles={"active": "green"}),
        Column("tags", "TAGS", wide=True),
    ),
    lambda item: str(item["name"]),
)
THINGS: tuple[Item, ...] = (
    {
        "name": "plain",
        "count": 7,
        "seen_at": Instant(NOW_US - 842_000_000),
        "state": "active",
        "tags": ["a", "b"],
    },
    {
        "name": 'näme, "odd"',
        "count": 123_456,
        "seen_at": None,
        "state": "no",
        "tags": [],
    },
    {
        "name": "\x1b[31mred\n\u202e東京",
        "count": 0,
        "seen_at": Instant(NOW_US - 90_061_000_000),
        "state": None,
        "tags": ["\x9b1m"],
    },
)
PARENT: Item = {**THINGS[0], "parts": list(THINGS)}


def settings(output: Format) -> Settings:
    template = "{name}: {count:>6} {seen_at} {tags}"
    return Settings(format=output, template=template, clock_us=lambda: NOW_US)


@pytest.mark.parametrize("output", sorted(WRITTEN))
def test_a_listing_looks_like_its_golden_file(
    output: Format, capsys: pytest.CaptureFixture[str]
) -> None:
    show_list(settings(output), THING, THINGS)
    assert capsys.readouterr().out == (GOLDEN / f"list.{output}").read_text()


@pytest.mark.parametrize("output", sorted(WRITTEN))
def test_a_single_thing_looks_like_its_golden_file(
    output: Format, capsys: pytest.CaptureFixture[str]
) -> None:
    show_one(settings(output), THING, PARENT, [Section("parts", THING)])
    assert capsys.readouterr().out == (GOLDEN / f"one.{output}").read_text()


@pytest.mark.parametrize("output", sorted(WRITTEN - {Format.TABLE, Format.WIDE}))
def test_a_listing_that_grows_ends_as_one_that_was_complete(
    output: Format, capsys: pytest.CaptureFixture[str]
) -> None:
    with growing(settings(output), THING) as listing:
        for item in THINGS:
            listing.add(item)
    assert capsys.readouterr().out == (GOLDEN / f"list.{output}").read_text()


def test_a_table_that_grows_prints_each_row_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with growing(settings(Format.TABLE), THING) as listing:
        listing.add(THINGS[0])
        assert capsys.readouterr().out == (
            "NAME       COUNT  SEEN  STATE\nplain          7  2026-11-18T10:52:38Z  active\n"
        )


@pytest.mark.parametrize("output", sorted(WRITTEN - {Format.CSV}))
def test_no_control_character_leaves_in_any_format(
    output: Format, capsys: pytest.CaptureFixture[str]
) -> None:
    show_list(settings(output), THING, THINGS)
    printed = capsys.readouterr().out
    assert not set(printed) & {"\x1b", "\x9b", "\u202e", "\r", "\x7f"}


@given(st.text(), st.sampled_from(["no", "1e3", "0o7", "null", "~", "", "y", "e3", "2026-11-20"]))
def test_yaml_is_read_back_as_what_it_was(text: str, word: str) -> None:
    item: Item = {"name": text, "count": 7, "seen_at": None, "state": word, "tags": [text, word]}
    with redirect_stdout(io.StringIO()) as printed:
        show_one(settings(Format.YAML), THING, item)
    assert yaml.safe_load(printed.getvalue())["item"] == item


def test_csv_escapes_control_characters_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show_list(settings(Format.CSV), THING, THINGS)
    assert "\x1b[31mred\n" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show_list(settings(Format.CSV), THING, THINGS)
    assert r"\x1b[31mred\n" in capsys.readouterr().out


@pytest.mark.parametrize("output", sorted(WRITTEN))
def test_an_empty_listing_is_still_whole(
    output: Format, capsys: pytest.CaptureFixture[str]
) -> None:
    show_list(settings(output), THING, [])
    assert capsys.readouterr().out == (GOLDEN / f"empty.{output}").read_text()


def test_colours_change_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    coloured = settings(Format.TABLE)
    coloured.colour = Colour.ALWAYS
    show_list(coloured, THING, THINGS[:1])
    printed = capsys.readouterr().out
    assert "\x1b[32mactive\x1b[0m" in printed
    assert "\x1b[1mNAME" in printed


def test_headers_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    bare = settings(Format.TABLE)
    bare.headers = False
    show_list(bare, THING, THINGS[:1])
    assert capsys.readouterr().out == "plain      7  14m02s  active\n".replace("      7", "  7")


def test_a_listing_that_fails_before_its_first_item_prints_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(LookupError), growing(settings(Format.JSON), THING):
        raise LookupError
    assert capsys.readouterr().out == ""


def test_a_listing_that_is_interrupted_is_a_valid_document(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted_after_one() -> None:
        with growing(settings(Format.JSON), THING) as listing:
            listing.add(THINGS[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted_after_one()
    assert capsys.readouterr().out.endswith("\n]}\n")


def test_a_column_of_a_field_that_an_item_lacks_is_empty() -> None:
    assert Column("members", "MEMBERS").text({"name": "billing"}, NOW_US) == "-"

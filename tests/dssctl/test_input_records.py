import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_core.errors import BrokenInputLine
from dssctl.input_records import (
    Fields,
    InputFormat,
    InputRecord,
    format_of,
    json_parser,
    line_parser,
)
from dssctl.records.items import bytes_fields

parse = json_parser(Fields(), None, None)


def test_a_line_is_a_payload_whatever_its_bytes() -> None:
    assert line_parser(b"k", "s")(1, b"\xff\x00") == InputRecord(b"\xff\x00", b"k", "s")


def test_the_usual_fields_are_taken_where_they_are_there() -> None:
    line = b'{"payload": "p", "key": "k", "subject": "a/b", "offset": 7}'
    assert parse(1, line) == InputRecord(b"p", b"k", "a/b")
    assert parse(1, b'{"payload": "p"}') == InputRecord(b"p", None, None)


def test_an_absent_key_is_not_an_empty_key() -> None:
    assert parse(1, b'{"payload": "", "key": ""}').key == b""
    assert parse(1, b'{"payload": "", "key": null}').key is None


def test_a_key_and_a_subject_of_the_command_line_fill_gaps() -> None:
    fill = json_parser(Fields(), b"k", "s")
    assert fill(1, b'{"payload": "p"}') == InputRecord(b"p", b"k", "s")
    assert fill(1, b'{"payload": "p", "key": "own", "subject": "o"}') == InputRecord(
        b"p", b"own", "o"
    )


def test_named_fields_may_hold_numbers_and_objects() -> None:
    named = json_parser(Fields(payload="data", key="id", subject="about"), None, None)
    line = b'{"data": {"a": [1, null]}, "id": 42, "about": "x"}'
    assert named(1, line) == InputRecord(b'{"a":[1,null]}', b"42", "x")


def test_the_whole_line_can_be_the_payload() -> None:
    line = b'{"id": "7", "rest":   true}'
    assert json_parser(Fields(payload=".", key="id"), None, None)(1, line) == InputRecord(
        line, b"7", None
    )


def test_headers_keep_order_and_repeats() -> None:
    line = (
        b'{"payload": "p", "headers": [{"name": "h", "value": "1"}, {"name": "h", "value": "2"}]}'
    )
    assert parse(1, line).headers == (("h", b"1"), ("h", b"2"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "it is empty"),
        (b"  ", "it is empty"),
        (b'{"payload": ', "it is not JSON"),
        (b'{"payload": "p"} x', "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[1]", "it is not a JSON object"),
        (b'{"payload": "\xff"}', "it is not UTF-8"),
        (b'{"other": 1}', "it has no field payload"),
        (b'{"payload": null}', "its field payload is null"),
        (b'{"payload": "p", "subject": 7}', "its subject is not text"),
        (b'{"payload_base64": "%%"}', "its field payload_base64 is not base64"),
        (b'{"payload": "\\ud800"}', "half a surrogate pair"),
        (b'{"payload": "p", "headers": {"a": 1}}', "its headers are not a list"),
        (b'{"payload": "p", "headers": [{"value": "v"}]}', "a header has no name"),
    ],
)
def test_a_broken_line_is_named_with_what_is_wrong(line: bytes, reason: str) -> None:
    with pytest.raises(BrokenInputLine) as broken:
        parse(12, line)
    assert broken.value.fields["line"] == "12"
    assert reason in broken.value.message


@pytest.mark.parametrize("fields", [Fields(key="id"), Fields(subject="id"), Fields(payload="id")])
def test_a_named_field_that_is_missing_breaks_the_line(fields: Fields) -> None:
    with pytest.raises(BrokenInputLine, match="id"):
        json_parser(fields, None, None)(1, b'{"payload": "p"}')


@given(st.binary(), st.none() | st.binary())
def test_what_consume_prints_is_what_produce_takes(payload: bytes, key: bytes | None) -> None:
    printed = json.dumps({**bytes_fields("payload", payload), **bytes_fields("key", key)})
    assert parse(1, printed.encode()) == InputRecord(payload, key, None)


@pytest.mark.parametrize(
    ("path", "lines"),
    [("x.jsonl", "jsonl"), ("/in/X.JSON", "jsonl"), ("x.ndjson", "jsonl"), ("x.txt", "lines")],
)
def test_a_name_that_ends_as_one_of_json_means_lines_of_json(path: str, lines: str) -> None:
    assert format_of(path) == InputFormat(lines)
    assert format_of("-") == InputFormat.LINES

"""How payloads are decoded: nothing is lost, and nothing repaints a terminal."""

import json

import pytest

from dssctl.output.model import Item
from dssctl.records.payloads import Decoding, payload_cell, payload_fields, payload_lines


def cell(payload: bytes, decoding: Decoding = Decoding.AUTO, *, whole: bool = False) -> str:
    return payload_cell(whole=whole)(payload_fields(payload, decoding), 0)


def decoded_as(payload: bytes) -> object:
    return payload_fields(payload, Decoding.AUTO)["decoded_as"]


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (b'{"id": 7}', "json"),
        (b" [1, 2]", "json"),
        (b"", "text"),
        (b"7", "text"),
        (b"plain \xc3\xa4", "text"),
        (b"\xff\x00", "hex"),
        (b'{"id": NaN}', "text"),
        (b'{"id": 1e999}', "text"),
        (b'{"id": ', "text"),
        (b"[" * 100 + b"]" * 100, "text"),
        (b"[" * 100_000, "text"),
    ],
)
def test_what_is_in_a_payload_is_found_out(payload: bytes, kind: str) -> None:
    assert decoded_as(payload) == kind


def test_a_payload_is_told_to_programs_as_it_is() -> None:
    fields = payload_fields(b'{"b": 1.0, "b": 2}', Decoding.AUTO)
    assert fields["payload"] == '{"b": 1.0, "b": 2}'
    assert fields["payload_bytes"] == 18
    assert payload_fields(b"\xff", Decoding.AUTO)["payload_base64"] == "/w=="


def test_a_document_is_nested_where_json_was_asked_for() -> None:
    assert payload_fields(b'{"id": [1]}', Decoding.JSON)["payload"] == {"id": [1]}
    plain: Item = payload_fields(b"no json", Decoding.JSON)
    assert (plain["payload"], plain["decoded_as"]) == ("no json", "text")


def test_bytes_are_shown_in_hex_and_as_text_with_escapes() -> None:
    assert cell(b"\xffa") == "hex:ff61"
    assert cell(b"hi", Decoding.HEX) == "hex:6869"
    assert payload_fields(b"\xffa", Decoding.TEXT)["payload"] == "\\xffa"


def test_a_cell_has_no_control_characters_and_is_not_taken_for_another() -> None:
    assert cell(b"\x1b[2J") == "$'\\x1b[2J'"
    assert cell(b"hex:ff") == "$'hex:ff'"
    assert cell(b'{"a":"\x1b"}') == '$\'{"a":"\\x1b"}\''


def test_a_long_payload_is_cut_in_a_table_unless_all_of_it_is_wanted() -> None:
    assert cell(b"x" * 200) == "x" * 120 + "... (200 bytes)"
    assert cell(b"x" * 200, whole=True) == "x" * 200


def test_a_page_shows_indented_json_lines_and_hex_beside_characters() -> None:
    assert list(payload_lines(b'{"id":7}', Decoding.AUTO)) == ["{", '  "id": 7', "}"]
    assert list(payload_lines(b"a\nb", Decoding.AUTO)) == ["a", "b"]
    assert list(payload_lines(b"\xffabcdefghijklmnop", Decoding.AUTO)) == [
        "000000  ff 61 62 63 64 65 66 67 68 69 6a 6b 6c 6d 6e 6f  .abcdefghijklmno",
        "000010  70                                               p",
    ]
    assert json.loads("".join(payload_lines(b'["\\ud800"]', Decoding.AUTO))) == ["\ud800"]

import json

from hypothesis import given
from hypothesis import strategies as st

from dssctl.output.escape import escaped, escaped_in_json, quoted


@given(st.text())
def test_escaped_text_is_one_line_without_control_characters(text: str) -> None:
    assert all(ord(char) >= 32 and not 0x7F <= ord(char) <= 0x9F for char in escaped(text))
    assert "\u202e" not in escaped(text)


@given(st.text())
def test_escaped_json_means_the_same(text: str) -> None:
    document = escaped_in_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(document) == text
    assert all(ord(char) >= 32 and not 0x7F <= ord(char) <= 0x9F for char in document)


@given(st.text(st.sampled_from("-$'\\\nn ab")), st.text(st.sampled_from("-$'\\\nn ab")))
def test_quoted_texts_look_alike_only_where_they_are_the_same(one: str, other: str) -> None:
    assert (quoted(one) == quoted(other)) == (one == other)
    assert quoted(one) not in {"-", ""}
    assert "\n" not in quoted(one)


def test_characters_that_nobody_sees_are_shown() -> None:
    assert escaped("a\u200bb\u00adc") == "a\\u200bb\\u00adc"
    assert escaped("\U0001f469\u200d\U0001f467") == "\U0001f469\\u200d\U0001f467"
    assert escaped("\u0645\u200c\u062e ❤\ufe0f") == "\u0645\u200c\u062e ❤\ufe0f"


def test_harmless_text_stays_as_it_is() -> None:
    assert escaped(r'C:\flights {"ä": 1}') == r'C:\flights {"ä": 1}'

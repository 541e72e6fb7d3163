"""What ends a sentence."""

import pytest

from dss_core.sentences import as_sentence


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("it broke", "it broke."),
        ("it broke.", "it broke."),
        ("why?", "why?"),
        ("well...", "well..."),
    ],
)
def test_a_sentence_ends_once(text: str, whole: str) -> None:
    assert as_sentence(text) == whole

"""Files that the tool wrote and reads again."""

import json
from pathlib import Path

import pytest

from dss_core.errors import DocumentUnreadable, InputUnreadable
from dssctl.documents import (
    Fields,
    list_of,
    number_of,
    numbers_of,
    objects_of,
    read_document,
    text_of,
)


def read(path: Path) -> tuple[str, int, list[tuple[int, ...]]]:
    def build(item: Fields) -> tuple[str, int, list[tuple[int, ...]]]:
        (part,) = objects_of(item, "parts")
        pairs = [numbers_of(pair, "pairs", 2) for pair in list_of(part, "pairs")]
        return text_of(item, "name"), number_of(item, "count"), pairs

    return read_document(str(path), "Thing", "a thing", "dssctl things export", build)


def written(path: Path, item: object, kind: str = "Thing") -> Path:
    path.write_text(json.dumps({"kind": kind, "item": item}))
    return path


WHOLE = {"name": "n", "count": 3, "parts": [{"pairs": [[1, 2], [4, 9]]}]}


def test_a_document_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read(written(tmp_path / "t", WHOLE)) == ("n", 3, [(1, 2), (4, 9)])


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ([], "item is no object"),
        (WHOLE | {"name": 7}, "name is no text"),
        (WHOLE | {"count": -1}, "count is no number from 0"),
        (WHOLE | {"count": True}, "count is no number from 0"),
        (WHOLE | {"count": "3"}, "count is no number from 0"),
        (WHOLE | {"parts": {}}, "parts is no list"),
        (WHOLE | {"parts": [1]}, "parts holds something that is no object"),
        (WHOLE | {"parts": [{"pairs": [[1]]}]}, "pairs is no list of 2 numbers"),
        ({"name": "n", "count": 3}, "parts is no list"),
    ],
)
def test_a_field_that_is_missing_or_wrong_is_named(
    item: object, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(DocumentUnreadable) as refused:
        read(written(tmp_path / "t", item))
    assert refused.value.fields["reason"] == reason
    assert "dssctl things export" in refused.value.hint_text


@pytest.mark.parametrize("text", ["", "{", "[]", '"Thing"', '{"kind": "Other", "item": {}}', "\0"])
def test_what_is_no_such_document_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(text)
    with pytest.raises(DocumentUnreadable):
        read(tmp_path / "t")


def test_what_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b'{"kind": "\xff"}')
    with pytest.raises(DocumentUnreadable):
        read(tmp_path / "t")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputUnreadable):
        read(tmp_path / "t")

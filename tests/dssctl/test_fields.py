"""One source tells of every field: kinds, columns and explanations agree."""

import importlib
import pkgutil
from collections.abc import Iterator

import dssctl
from dssctl.fields import KINDS, fields_of
from dssctl.output import Kind


def kinds() -> Iterator[tuple[str, Kind]]:
    """Every kind that a module of the tool defines, with its place."""
    for module in pkgutil.walk_packages(dssctl.__path__, "dssctl."):
        if module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Kind):
                yield f"{module.name}.{name}", value


def test_every_column_shows_a_field_that_is_described() -> None:
    unknown = {
        f"{place}: {kind.name}.{column.field}"
        for place, kind in kinds()
        for column in kind.columns
        if column.field not in {field.name for field in kind.fields}
    }
    assert unknown == set(), "describe them in dssctl/fields"


def test_a_field_is_described_once_in_a_sentence() -> None:
    for kind in KINDS:
        fields = fields_of(kind)
        names = [field.name for field in fields]
        assert len(set(names)) == len(names), kind
        assert [each.name for each in fields if not each.help.endswith(".")] == [], kind


def test_a_list_in_an_item_is_of_a_kind_that_is_described() -> None:
    inner = {field.kind for kind in KINDS for field in fields_of(kind) if field.kind}
    assert inner <= set(KINDS)

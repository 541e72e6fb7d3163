"""The table of what completes a value speaks of what the command tree has."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))

import completion_model as model

from dssctl.command_tree import Parameter, command_tree
from dssctl.completing.names_kept import LISTED_BY

TREE = command_tree()


def parameters() -> Iterator[Parameter]:
    return (each for node in TREE.commands() for each in node.parameters)


def test_every_option_of_the_table_is_in_the_tree() -> None:
    keys = {key for each in parameters() for key in model.flag_keys(each)}
    assert model.FLAGS.keys() <= keys


def test_every_value_of_the_table_is_in_the_tree() -> None:
    values = {each.value for each in parameters()}
    tabled = {*model.LIVE_VALUES, *model.FILE_VALUES, *model.ARGUMENTS}
    assert tabled <= values


def test_every_kind_of_name_can_be_asked_for() -> None:
    tabled = {each.removeprefix(model.LIVE) for each in model.FLAGS.values() if each[0] == "@"}
    assert {*model.LIVE_VALUES.values(), *tabled} <= LISTED_BY.keys()


@pytest.mark.parametrize("value", ["GROUP", "TOPIC", "STREAM", "BORROWER", "CLIENT"])
def test_an_argument_that_names_something_is_completed_where_it_must_be_there(value: str) -> None:
    places = {place.path: place for place in model.places(TREE)}
    for node in TREE.commands():
        for at, argument in enumerate(node.arguments):
            if argument.value == value and node.words[-1] not in model.NAMED_ANEW:
                assert places[" ".join(node.words)].arguments[at].startswith(model.LIVE), node.path

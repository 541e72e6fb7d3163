"""The command tree as values: nothing of the program is missing, nothing changes by itself."""

import os
import subprocess
import sys

from dssctl.command_tree import CommandNode, Parameter, command_tree
from dssctl.tree import COMMANDS

TREE = command_tree()


def node(*words: str) -> CommandNode:
    (found,) = (each for each in TREE.commands() if each.words == words)
    return found


def parameter(of: CommandNode, flag: str) -> Parameter:
    (found,) = (each for each in of.parameters if flag in (*each.flags, each.value))
    return found


def test_every_command_of_the_first_level_is_there_in_the_order_of_the_help() -> None:
    assert [child.words for child in TREE.children] == [(name,) for name in COMMANDS]


def test_every_command_and_every_parameter_says_what_it_is_for() -> None:
    for each in TREE.commands():
        assert each.summary, each.path
        assert all(of.help for of in each.parameters), each.path


def test_a_noun_has_its_verbs_and_a_command_alone_is_one() -> None:
    paths = {each.path for each in TREE.commands()}
    assert {"dssctl groups ls", "dssctl topics create", "dssctl consume"} <= paths
    assert "dssctl groups" not in paths


def test_an_argument_is_known_by_its_place_and_an_option_by_its_flags() -> None:
    evict = node("borrowers", "evict")
    assert [each.value for each in evict.arguments] == ["GROUP", "BORROWER"]
    assert parameter(evict, "--grace").value == "SPAN"
    assert parameter(evict, "--dry-run").type == "flag"
    assert parameter(evict, "--wait").off_flags == ("--no-wait",)


def test_marks_of_what_may_be_absent_or_repeated_are_no_part_of_a_values_name() -> None:
    kinds = parameter(node("watch"), "KIND")
    assert kinds.repeated
    assert not kinds.required


def test_choices_and_defaults_are_plain_words() -> None:
    given = parameter(node("records", "peek"), "--as")
    assert given.type == "choice"
    assert given.default in given.choices


def test_the_tree_is_the_same_in_every_process() -> None:
    program = "from dssctl.command_tree import command_tree; print(command_tree())"
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1

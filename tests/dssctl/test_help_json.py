"""The command tree as a program reads it, and what the tool takes for what was meant."""

import json
from collections.abc import Callable

import pytest

from support.dssctl_call import Completed

Run = Callable[..., Completed]


def commands(done: Completed) -> dict[str, dict[str, object]]:
    assert done.returncode == 0, done.stderr.decode()
    return {each["command"]: each for each in json.loads(done.stdout)["commands"]}


def test_the_tree_tells_what_each_command_does_and_prints(dssctl: Run) -> None:
    tree = commands(dssctl("--help-json"))
    assert tree["dssctl groups ls"]["impact"] == "read"
    assert tree["dssctl groups ls"]["prints"] == ["Group"]
    assert tree["dssctl groups pause"]["impact"] == "write"
    assert tree["dssctl topics rm"]["impact"] == "destructive"
    assert tree["dssctl groups rm"]["impact"] == "destructive"
    assert {each["impact"] for each in tree.values()} == {"read", "write", "destructive"}


def test_a_noun_tells_of_its_verbs_and_a_verb_of_itself(dssctl: Run) -> None:
    assert {each.split()[1] for each in commands(dssctl("groups", "--help-json"))} == {"groups"}
    # A required argument is not asked for first.
    assert list(commands(dssctl("topics", "rm", "--help-json"))) == ["dssctl topics rm"]


def test_global_options_stand_in_it_once(dssctl: Run) -> None:
    document = json.loads(dssctl("groups", "ls", "--help-json").stdout)
    globally = {flag for each in document["globalOptions"] for flag in each["flags"]}
    [ls] = document["commands"]
    own = {flag for each in ls["options"] for flag in each["flags"]}
    assert {"--output", "--context", "-X"} <= globally
    assert {"--filter", "--watch"} <= own
    assert not globally & own


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (("error", "explain", "DSS2001"), ("errors", "explain", "DSS2001")),
        (("errors", "list"), ("errors", "ls")),
        (("context", "list"), ("contexts", "ls")),
    ],
)
def test_the_singular_and_another_usual_verb_are_understood(
    written: tuple[str, ...], meant: tuple[str, ...], dssctl: Run
) -> None:
    assert dssctl(*written).stdout == dssctl(*meant).stdout
    assert dssctl(*written).returncode == 0


def test_aliases_are_in_no_help(dssctl: Run) -> None:
    printed = dssctl("--help").stdout.decode() + dssctl("errors", "--help").stdout.decode()
    assert "\n  list " not in printed
    assert "\n  error " not in printed


@pytest.mark.parametrize(
    ("written", "near"),
    [(("gruops", "ls"), "'groups'"), (("groups", "desribe", "g"), "'describe'"), (("o",), "")],
)
def test_a_misspelt_command_suggests_one_that_is_there(
    written: tuple[str, ...], near: str, dssctl: Run
) -> None:
    done = dssctl(*written)
    assert done.returncode == 2
    assert ("Did you mean" in done.stderr.decode()) is bool(near)
    assert near in done.stderr.decode()


@pytest.mark.parametrize(
    ("what", "first"),
    [
        ("group.lag", "Group.lag"),
        ("groups", "Group.group_id"),
        ("lag", "Group.lag"),
        ("operation-plan.undoable", "OperationPlan.undoable"),
    ],
)
def test_types_and_fields_are_explained(what: str, first: str, dssctl: Run) -> None:
    assert dssctl("explain", what, "-o", "name").stdout.decode().split()[0] == first


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("grop", "Did you mean group"),
        ("group.lga", "Did you mean group.lag"),
        ("DSS2001", "dssctl errors explain DSS2001"),
        ("zzzz", "hint: List them: dssctl explain"),
    ],
)
def test_what_cannot_be_explained_is_told_with_what_may_be_meant(
    what: str, said: str, dssctl: Run
) -> None:
    done = dssctl("explain", what)
    assert done.returncode == 2
    assert said in done.stderr.decode()

"""What people type first who come from other tools."""

import subprocess
from collections.abc import Callable

import pytest

from dssctl.tree import COMMANDS, VERBS, verb_meant

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.mark.parametrize(
    ("word", "known", "verb"),
    [
        ("show", {"describe", "ls"}, "describe"),
        ("show", {"get", "peek"}, "get"),
        ("show", {"show", "describe"}, "show"),
        ("describe", {"show", "ls"}, "show"),
        ("create", {"add", "rm"}, "add"),
        ("show", {"ls"}, "show"),
    ],
)
def test_another_word_names_the_verb_that_the_noun_has(
    word: str, known: set[str], verb: str
) -> None:
    assert verb_meant(word, known) == verb


def test_no_verb_is_a_noun() -> None:
    assert not VERBS & {*COMMANDS}


def test_a_verb_before_the_noun_is_told_where_it_belongs(dssctl: Run) -> None:
    done = dssctl("describe", "orders")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"A noun comes first: dssctl groups describe." in done.stderr


@pytest.mark.parametrize(
    ("verb", "meant"), [("status", b"'daemon status'"), ("stuck", b"'groups stuck'")]
)
def test_a_verb_without_its_noun_is_told_whose_it_is(verb: str, meant: bytes, dssctl: Run) -> None:
    done = dssctl(verb)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Did you mean " + meant in done.stderr


@pytest.mark.parametrize("words", [(), ("groups",), ("group", "list")])
def test_help_is_a_word_too(words: tuple[str, ...], dssctl: Run) -> None:
    done = dssctl("help", *words)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == dssctl(*words, "--help").stdout


def test_a_context_is_given_an_endpoint_only_where_one_can_be(dssctl: Run) -> None:
    done = dssctl("contexts", "create", "prod", "--endpoint", "nope")
    assert done.returncode == 2
    assert b"error DSS1010: endpoint nope is not allowed" in done.stderr

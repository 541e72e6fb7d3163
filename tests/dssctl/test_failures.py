import json

import pytest
import typer

from dss_core.errors import REGISTRY, ExitCode, TopicNotFound
from dssctl.failures import exit_code_for, report
from dssctl.invocation import run
from dssctl.settings import Format, Settings


def test_every_condition_has_the_exit_code_of_the_registry() -> None:
    for leaf in REGISTRY.values():
        assert exit_code_for(leaf()) is leaf.exit_code, leaf
        assert leaf.exit_code is not ExitCode.OK, leaf


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (typer.BadParameter("x"), ExitCode.USAGE),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
        (BrokenPipeError(), ExitCode.PIPE_CLOSED),
        (ValueError(), ExitCode.FAILED),
    ],
)
def test_other_failures_have_the_codes_that_shells_know(
    failure: BaseException, code: ExitCode
) -> None:
    assert exit_code_for(failure) is code


def test_a_report_is_a_sentence_and_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    report(TopicNotFound(topic="x\x1b[2J"), Settings())
    assert capsys.readouterr().err == (
        "error DSS2001: There is no topic x\\x1b[2J.\n"
        "hint: List them: dssctl topics ls. Create it: dssctl topics create x\\x1b[2J\n"
    )


@pytest.mark.parametrize("output", [Format.JSON, Format.JSONL])
def test_a_report_is_json_where_a_program_reads_along(
    output: Format, capsys: pytest.CaptureFixture[str]
) -> None:
    report(TopicNotFound(topic="x"), Settings(format=output))
    document = json.loads(capsys.readouterr().err)
    assert document["code"] == "DSS2001"
    assert document["fields"] == {"topic": "x"}


def test_an_interruption_needs_no_words(capsys: pytest.CaptureFixture[str]) -> None:
    report(KeyboardInterrupt(), Settings())
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ops", "show", "foo"), "'foo' is no whole number from 1 to 9223372036854775807."),
        (("records", "peek", "t", "-n", "0"), "'0' is no whole number from 1 to 10000."),
        (("groups", "rebalance", "g", "--max-moves", "a"), "'a' is no whole number from 1 on."),
    ],
)
def test_a_number_that_is_none_is_told_with_its_range(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == ExitCode.USAGE
    assert said in capsys.readouterr().err


def test_an_order_that_is_none_is_told_with_what_can_be_sorted_by(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["errors", "ls", "--sort", "colour"]) == ExitCode.USAGE
    told = capsys.readouterr().err
    assert "there is no field colour" in told
    assert "Sort by one of: code, " in told
    assert "--filter" not in told


def test_one_look_at_a_screen_that_is_none_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["top", "groupz", "-o", "table"]) == ExitCode.USAGE
    assert "there is no screen groupz; did you mean group or groups?" in capsys.readouterr().err


def test_a_verb_that_is_none_is_told_with_those_that_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["offsets", "frobnicate"]) == ExitCode.USAGE
    told = capsys.readouterr().err
    assert all(verb in told for verb in ("ls", "rewind", "skip", "seek", "export", "import"))


def test_who_asks_a_kind_of_jobs_for_its_list_is_told_where_jobs_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["replays", "ls"]) == ExitCode.USAGE
    told = capsys.readouterr().err
    assert "There is only create." in told
    assert "Jobs are listed and steered by dssctl jobs." in told


def test_a_word_too_many_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["groups", "pause", "g", "b", "c"]) == ExitCode.USAGE
    assert "there is no place for 'b c'" in capsys.readouterr().err

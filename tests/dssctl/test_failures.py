import json

import pytest
import typer

from dss_core.errors import REGISTRY, DssError, ExitCode, TopicNotFound
from dssctl.failures import exit_code_for, report
from dssctl.settings import Format, Settings


@pytest.mark.parametrize("leaf", REGISTRY.values(), ids=REGISTRY)
def test_every_condition_has_the_exit_code_of_the_registry(leaf: type[DssError]) -> None:
    assert exit_code_for(leaf()) is leaf.exit_code
    assert leaf.exit_code is not ExitCode.OK


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

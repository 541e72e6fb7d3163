"""What is shown of something that was created."""

import pytest

from dssctl.creation import show_created
from dssctl.output import Column, Kind
from dssctl.settings import Format, Settings

KIND = Kind("Topic", (Column("name", "NAME"),), lambda item: str(item["name"]))


def shown(settings: Settings, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    show_created(settings, KIND, {"name": "orders"}, "The topic orders is there.", "dssctl x")
    printed = capsys.readouterr()
    return printed.out, printed.err


def test_a_person_gets_a_sentence_and_the_next_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(Settings(), capsys) == ("The topic orders is there.\n", "note: next: dssctl x\n")


@pytest.mark.parametrize(
    "settings", [Settings(format=Format.NAME), Settings(flags={"output": "table"})]
)
def test_a_format_that_is_asked_for_is_complete(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = shown(settings, capsys)
    assert out.split()[-1] == "orders"
    assert err == ""

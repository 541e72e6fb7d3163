"""What a user sees of a mistake of the tool."""

from pathlib import Path

import pytest

from dssctl.broken import FAILURES_KEPT
from dssctl.invocation import run


def test_a_mistake_of_the_tool_is_a_condition_with_its_traceback_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("DSSCTL_CONFIG", str(tmp_path / "none.toml"))

    def mistaken(*_: object) -> None:
        raise KeyError("a mistake\nof ours")

    monkeypatch.setattr("dssctl.commands.contexts.list_known", mistaken)
    for _ in range(FAILURES_KEPT + 2):
        assert run(["contexts", "ls"]) == 1
    said = capsys.readouterr().err
    assert "error DSS1156: dssctl failed where it should not: KeyError" in said
    assert "Traceback" not in said
    kept = list((tmp_path / "dssctl" / "failures").iterdir())
    assert 1 <= len(kept) <= FAILURES_KEPT
    assert "in mistaken" in kept[0].read_text()
    assert str(kept[0].parent) in said

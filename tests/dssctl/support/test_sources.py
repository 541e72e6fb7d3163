"""What a bundle is made of, where a source has nothing."""

from pathlib import Path

import pytest

from dssctl.support.sources import journal


@pytest.mark.parametrize(
    ("says", "lines"),
    [("-- No entries --", None), ("-- Boot 1f --\\n2026 dssd[7]: serving", 2), ("", None)],
)
def test_a_journal_without_an_entry_is_missing(
    says: str, lines: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "journalctl"
    program.write_text(f"#!/bin/sh\nprintf '%b' '{says}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    if lines is None:
        with pytest.raises(OSError, match="has nothing of the unit dssd"):
            journal()
    else:
        assert len(journal()) == lines

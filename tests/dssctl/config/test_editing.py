import os
from pathlib import Path

import pytest

from dss_core.errors import IllegalConfig
from dssctl.config.editing import edit_configuration, table_of
from support.dssctl_call import call_dssctl


def test_a_change_keeps_comments_and_is_nobody_elses_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.toml"
    monkeypatch.setenv("DSSCTL_CONFIG", str(path))
    path.write_text("# ours\n[contexts.here]\nendpoint = 'unix:/a'\n")
    edit_configuration(
        lambda document: table_of(document, "contexts", "here").update(protected=True)
    )
    text = path.read_text()
    assert text.startswith("# ours\n")
    assert "protected = true" in text
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_is_no_regular_file_is_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "device"
    monkeypatch.setenv("DSSCTL_CONFIG", str(pipe))
    pipe.mkdir()
    with pytest.raises(IllegalConfig):
        edit_configuration(lambda document: document.clear())
    pipe.rmdir()
    pipe.symlink_to(os.devnull)
    with pytest.raises(IllegalConfig, match="no regular file"):
        edit_configuration(
            lambda document: table_of(document, "contexts", "a").update(endpoint="b:1")
        )
    assert pipe.is_char_device()


def test_a_key_is_set_and_taken_out_however_the_file_spells_it(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"

    def done(*arguments: str) -> str:
        assert call_dssctl(*arguments, environ={"DSSCTL_CONFIG": str(path)}).returncode == 0
        return path.read_text()

    path.write_text(
        "connect-wait = 3\n\n[contexts.prod]\nread-only = true\nspark-master = 'yarn'\n"
    )
    assert "connect-wait" not in done("config", "set", "connect-wait", "5")
    edited = done("contexts", "edit", "prod", "--spark-master", "local[2]")
    assert 'spark_master = "local[2]"' in edited
    assert "spark-master" not in edited
    assert "read-only" not in done("config", "unset", "contexts.prod.read-only")

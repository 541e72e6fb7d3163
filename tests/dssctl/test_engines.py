"""Which engine is chosen, and what is refused before a job is made."""

import pytest
import typer

from dss_core.errors import MasterUnreachable
from dss_spark.limits import AUTO_BYTES
from dssctl.engines import LOCAL_ENGINE, Engine, chosen
from dssctl.settings import Settings


def test_the_local_engine_is_the_usual_one_and_takes_no_master() -> None:
    assert chosen(Settings(), None, None, None) == LOCAL_ENGINE
    with pytest.raises(typer.BadParameter, match="--engine spark"):
        chosen(Settings(), None, "local[2]", None)
    with pytest.raises(typer.BadParameter, match="one of local, spark, auto"):
        chosen(Settings(), "flink", None, None)


def test_a_flag_counts_before_what_is_configured() -> None:
    settings = Settings(engine="spark", spark_master="spark://head:7077")
    found = chosen(settings, None, None, ["spark.a=b"], starts=False)
    assert found == Engine("spark", "spark://head:7077", ("spark.a=b",))
    assert chosen(settings, "local", None, None) == LOCAL_ENGINE
    assert chosen(settings, None, "local[2]", None, starts=False).master == "local[2]"
    with pytest.raises(typer.BadParameter, match="no property"):
        chosen(settings, None, None, ["a=b"], starts=False)


@pytest.mark.parametrize(("size_bytes", "name"), [(AUTO_BYTES - 1, "local"), (AUTO_BYTES, "spark")])
def test_auto_goes_by_size_and_says_so(
    size_bytes: int, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dss_spark.submission.require_spark", lambda: None)
    assert chosen(Settings(), "auto", None, None, size_bytes, starts=False).name == name
    assert f"engine {name}" in capsys.readouterr().err


def test_a_master_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dss_spark.submission.require_spark", lambda: None)
    with pytest.raises(MasterUnreachable):
        chosen(Settings(), "spark", "lokal[2]", None)


def test_a_dry_run_needs_no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    settings = Settings()
    settings.change.dry_run = True
    assert chosen(settings, "spark", None, None).name == "spark"

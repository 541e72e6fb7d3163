"""The session of a driver begins beside what the driver loads. No Spark is started here."""

import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from dss_core.errors import EngineLost
from dss_spark.beginning import Beginning
from support.looked_at_job import JOB

pytest.importorskip("pyspark", reason="proof left out: there is no PySpark (the extra `spark`)")


def begins_by(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    builder = SimpleNamespace(getOrCreate=act)
    monkeypatch.setattr("pyspark.sql.SparkSession", SimpleNamespace(builder=builder))


def test_a_session_begins_while_the_driver_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = threading.Event()
    session = SimpleNamespace(sparkContext=SimpleNamespace(setLogLevel=lambda _level: None))
    begins_by(monkeypatch, lambda: session if loaded.wait() else None)
    beginning = Beginning()
    loaded.set()  # Never, if the session were waited for.
    assert beginning.session() is session
    assert beginning.session() is session


async def test_a_job_waits_for_another_driver_where_no_session_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dss_spark.engine import SparkEngine

    def fails() -> None:
        raise RuntimeError("no master\nat a line")

    begins_by(monkeypatch, fails)
    engine = SparkEngine(Beginning().session, "spark of a test")
    with pytest.raises(EngineLost, match="its session does not begin: no master"):
        async with engine.opened(JOB):
            pass

"""What is submitted, and what is refused before a job is made. No Spark is started here."""

import os
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dss_core.errors import EngineMissing, MasterUnreachable
from dss_spark.submission import (
    Submission,
    command_of,
    conf_of,
    environment,
    require_master,
    require_spark,
)


def command(tmp_path: Path, master: str, **conf: str) -> list[str]:
    folder = tmp_path / "folder"
    folder.mkdir(exist_ok=True)
    wanted = {f"spark.{name.replace('_', '.')}": value for name, value in conf.items()}
    submission = Submission(["again", "next"], "unix:/run/dss", master, wanted, folder)
    return command_of(submission, tmp_path / "pyspark")


def test_a_local_master_tries_tasks_again_and_stays_on_loopback(tmp_path: Path) -> None:
    words = command(tmp_path, "local[2]")
    assert words[:3] == [str(tmp_path / "pyspark/bin/spark-submit"), "--master", "local[2,3]"]
    assert "spark.driver.bindAddress=127.0.0.1" in words
    assert f"spark.local.dir={tmp_path / 'folder' / 'local'}" in words
    assert "--py-files" not in words
    driven = ["again", "next", "--master", "local[2]", "--endpoint", "unix:/run/dss"]
    assert words[-len(driven) :] == driven
    assert "local[4,1]" in command(tmp_path, "local[4,1]")


def test_what_the_user_sets_counts(tmp_path: Path) -> None:
    words = command(tmp_path, "local[2]", driver_memory="3g")
    assert "spark.driver.memory=3g" in words
    assert "spark.driver.memory=1g" not in words


def test_a_cluster_gets_our_packages_as_one_file(tmp_path: Path) -> None:
    words = command(tmp_path, "spark://head:7077")
    packed = words[words.index("--py-files") + 1]
    with zipfile.ZipFile(packed) as found:
        names = set(found.namelist())
    assert {"dss_core/routing.py", "dss_spark/staging.py", "dss_api/__init__.py"} <= names
    assert not any(name.startswith("spark.driver.host") for name in words)


def test_workers_use_the_interpreter_and_the_packages_of_the_driver(tmp_path: Path) -> None:
    found = environment(tmp_path, "local")
    assert found["SPARK_HOME"] == str(tmp_path)
    assert any((Path(each) / "dss_spark").is_dir() for each in found["PYTHONPATH"].split(":"))


def test_without_java_or_pyspark_the_error_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(EngineMissing, match="PySpark") as missing:
        require_spark()
    assert "dss[spark]" in missing.value.hint_text
    monkeypatch.undo()
    pytest.importorskip("pyspark", reason="proof left out: there is no PySpark (the extra `spark`)")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineMissing, match="Java") as missing:
        require_spark()
    assert "openjdk-17" in missing.value.hint_text


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,3]"])
def test_a_local_master_is_always_there(master: str) -> None:
    require_master(master)


@pytest.mark.parametrize("master", ["lokal[2]", "spark://head", "http://head:1", "k8s://x", ""])
def test_a_master_that_is_written_wrongly_is_refused(master: str) -> None:
    with pytest.raises(MasterUnreachable, match="written"):
        require_master(master)


def test_a_master_is_there_where_one_of_its_hosts_takes_a_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        there, closed = server.getsockname()[1], unused.getsockname()[1]
        require_master(f"spark://127.0.0.1:{closed},127.0.0.1:{there}")
        require_master(f"k8s://https://127.0.0.1:{there}")
        with pytest.raises(MasterUnreachable, match="takes no connection"):
            require_master(f"spark://127.0.0.1:{closed}")


def test_yarn_needs_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(MasterUnreachable, match="HADOOP_CONF_DIR"):
        require_master("yarn")


@pytest.mark.parametrize("text", ["spark.x", "x=1", "=", ""])
def test_a_property_is_written_with_its_name_and_value(text: str) -> None:
    assert conf_of(["spark.a=1=2"]) == {"spark.a": "1=2"}
    with pytest.raises(ValueError, match="no property"):
        conf_of([text])


def test_a_driver_without_java_tells_code_and_hint(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="proof left out: there is no PySpark (the extra `spark`)")
    command = [sys.executable, "-m", "dss_spark", "again", "--folder", str(tmp_path / "folder")]
    env = {**os.environ, "JAVA_HOME": str(tmp_path)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == EngineMissing.exit_code
    assert done.stderr.startswith("error DSS7040: The engine spark needs Java")
    assert "hint: Install a Java runtime" in done.stderr
    assert not (tmp_path / "folder").exists()

"""A driver on a local master, and its tasks, load the PySpark that is compiled already."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dss_spark.home import home_of
from dss_spark.submission import environment
from support.proof_share import only_in_proof

WHERE = """
import pyspark
from pyspark.sql import SparkSession
session = SparkSession.builder.getOrCreate()
tasks = session.sparkContext.range(1, numSlices=1).map(lambda _: __import__("pyspark").__file__)
print("driver", pyspark.__file__)
print("task", *tasks.collect())
"""


@pytest.fixture
def pyspark() -> Path:
    pytest.importorskip("pyspark", reason="proof left out: there is no PySpark (the extra `spark`)")
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def test_a_process_with_the_path_that_spark_makes_of_it_loads_the_installed_pyspark(
    pyspark: Path, tmp_path: Path
) -> None:
    env = environment(home_of(pyspark, tmp_path), "local[1]")
    packed = Path(env["SPARK_HOME"]) / "python" / "lib" / "pyspark.zip"
    env["PYTHONPATH"] = os.pathsep.join([str(packed), env["PYTHONPATH"]])
    command = [sys.executable, "-c", "import py4j, pyspark; print(pyspark.__file__)"]
    said = subprocess.check_output(command, env=env, text=True)
    assert said == f"{pyspark / '__init__.py'}\n"


@only_in_proof
@pytest.mark.slow("a JVM starts")
def test_the_driver_and_its_tasks_load_the_installed_pyspark(pyspark: Path, tmp_path: Path) -> None:
    program = tmp_path / "where.py"
    program.write_text(WHERE)
    env = environment(home_of(pyspark, tmp_path), "local[1]")
    submit = str(pyspark / "bin" / "spark-submit")
    command = [submit, "--master", "local[1]", str(program)]
    said = subprocess.check_output(command, env=env, text=True)
    places = dict(line.split() for line in said.splitlines() if line.startswith(("driver", "task")))
    assert places == dict.fromkeys(("driver", "task"), str(pyspark / "__init__.py"))


def test_what_is_linked_outlives_the_home(pyspark: Path, tmp_path: Path) -> None:
    home = home_of(pyspark, tmp_path)
    assert (home / "jars").samefile(pyspark / "jars")
    shutil.rmtree(home)
    assert any((pyspark / "jars").iterdir())


def test_without_an_installed_py4j_the_home_is_that_of_pyspark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert home_of(tmp_path, tmp_path) == tmp_path

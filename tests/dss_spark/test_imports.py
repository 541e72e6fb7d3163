"""What a driver on Spark loads: Arrow would double what its start takes besides Spark's own."""

import subprocess
import sys

import pytest

LOADED = """
import sys
import dss_spark.driving
from dss_spark.kinds import kind_of
assert kind_of(sys.argv[1]) is not None
print(*({"numpy", "pandas", "pyarrow"} & set(sys.modules)))
"""


@pytest.mark.parametrize("kind", ["replay", "transform"])
def test_a_driver_that_only_plans_loads_no_arrow(kind: str) -> None:
    pytest.importorskip("pyspark", reason="proof left out: there is no PySpark (the extra `spark`)")
    command = [sys.executable, "-c", LOADED, kind]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout == b"\n"

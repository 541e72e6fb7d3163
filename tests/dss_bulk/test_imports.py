"""What a driver loads: pandas would be half as much again of what its start takes."""

import subprocess
import sys


def test_a_driver_does_not_load_pandas_to_start() -> None:
    code = "import sys, dss_bulk.__main__; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"False\n"


def test_arrow_finds_no_pandas_in_the_process_of_a_driver() -> None:
    code = """
import sys
from dss_bulk.own_process import set_up
set_up()
import pyarrow as pa
assert pa.array([1, 2]).to_pylist() == [1, 2]
assert pa.scalar("x").as_py() == "x"
print("pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"False\n"

"""What a driver loads: pandas would be half as much again of what its start takes."""

import subprocess
import sys


def test_a_driver_does_not_load_pandas_to_start() -> None:
    code = "import sys, dss_bulk.__main__; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"False\n"

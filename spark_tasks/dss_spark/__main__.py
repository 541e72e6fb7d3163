"""``python -m dss_spark JOB... --endpoint ADDRESS --master MASTER --folder FOLDER``.

Submits the driver of one job, or of several jobs one after another in one session, waits for its
end, passes signals on, and removes its folder. Its exit code is the driver's.

Invariant: however the driver ends, its folder is removed and nothing of its process group is left.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

from dss_bulk.priority import give_way
from dss_core.errors import DssError
from dss_spark.home import home_of
from dss_spark.submission import (
    Submission,
    command_of,
    conf_of,
    environment,
    is_local,
    require_spark,
)

TERM_S = 10.0
"""How long the processes of a driver may take to end by themselves, before they are killed."""

GROUP_LOOK_S = 0.05
"""The pause between looks whether they have ended."""


def main() -> int:
    """Submit the jobs that the command line names."""
    give_way()
    parser = argparse.ArgumentParser(prog="python -m dss_spark", description=__doc__)
    parser.add_argument("job", nargs="+", help="its name or number; of some, one after another")
    parser.add_argument("--endpoint", help="of the daemon")
    parser.add_argument("--master", default="local[2]", help="as Spark writes it")
    parser.add_argument("--conf", action="append", default=[], help="spark.NAME=VALUE")
    parser.add_argument("--folder", type=Path, required=True, help="for files of this driver")
    given = parser.parse_args()
    try:
        conf = conf_of(given.conf)
        pyspark = require_spark()
    except ValueError as error:
        parser.error(str(error))
    except DssError as error:
        from dss_bulk.telling import told  # it loads what drives, which nothing here needs

        return told(error)
    _sweep(given.folder)
    folder = given.folder / f"{os.getpid()}"
    folder.mkdir(mode=0o700, parents=True)
    try:
        submission = Submission(given.job, given.endpoint, given.master, conf, folder)
        home = home_of(pyspark, folder) if is_local(given.master) else pyspark
        return _run(command_of(submission, pyspark), environment(home, given.master))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # another driver of the job has its own in it
            given.folder.rmdir()


def _sweep(folder: Path) -> None:
    """Remove folders of drivers that were killed together with this program."""
    for left in folder.iterdir() if folder.is_dir() else ():
        if not Path(f"/proc/{left.name}").exists():
            shutil.rmtree(left, ignore_errors=True)


def _run(command: list[str], environment: dict[str, str]) -> int:
    """Run it in a process group of its own, until it ends or this program is told to."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment, process_group=0)

    def pass_on(number: int, _frame: FrameType | None) -> None:
        os.killpg(child.pid, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    try:
        code = child.wait()
    finally:
        _end_group(child.pid)
    return code if code >= 0 else 128 - code


def _end_group(group: int) -> None:
    """End the rest of the group, such as workers of a killed JVM."""
    for number, patience_s in ((signal.SIGTERM, TERM_S), (signal.SIGKILL, TERM_S)):
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            return
        _wait_for_group(group, patience_s)


def _wait_for_group(group: int, patience_s: float) -> None:
    ends = time.monotonic() + patience_s
    while _lives(group) and time.monotonic() < ends:
        time.sleep(GROUP_LOOK_S)


def _lives(group: int) -> bool:
    """Whether a process of the group runs; a zombie does not count."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _parent, of = stat.read_text().rpartition(")")[2].split()[:3]
            if int(of) == group and state != "Z":
                return True
    return False


if __name__ == "__main__":
    sys.exit(main())

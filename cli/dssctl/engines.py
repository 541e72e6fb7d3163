"""Which engine drives a job, and the command that starts its driver.

``local`` is one process on this machine, ``spark`` a submission to a master; ``auto`` chooses
Spark, if it is installed, for jobs that would take one process long. A flag wins over a variable,
that over a context, and that over the file.

Invariant: if a driver cannot start, the job is refused before it is created. Only this module knows
`dss_spark`, and loads it only if Spark was chosen.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dss_core.counted import bytes_text
from dss_core.errors import EngineMissing
from dssctl.output import note
from dssctl.settings import ENGINES, Settings

LOCAL, SPARK, AUTO = ENGINES

EngineName = Annotated[
    str | None,
    typer.Option("--engine", metavar="ENGINE", help="local, spark, or auto: by size."),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="MASTER", help="The master of Spark: local[2], spark://HOST:PORT, yarn, k8s://HOST"
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="A property of Spark; repeatable."),
]


@dataclass(frozen=True, slots=True)
class Engine:
    """What drives a job."""

    name: str
    master: str = ""
    conf: Sequence[str] = ()

    def command(self, job: str, endpoint: str | None, folder: Path) -> list[str]:
        """The driver's command line; the folder is for its files."""
        said = ["--endpoint", endpoint] if endpoint is not None else []
        if self.name == LOCAL:
            return [sys.executable, "-m", "dss_bulk", job, *said]
        options = ["--master", self.master, "--folder", str(folder / f"{job}.spark")]
        conf = [word for each in self.conf for word in ("--conf", each)]
        return [sys.executable, "-m", "dss_spark", job, *said, *options, *conf]


LOCAL_ENGINE = Engine(LOCAL)


def chosen(
    settings: Settings,
    engine: str | None,
    master: str | None,
    conf: Sequence[str] | None,
    size_bytes: int | None = None,
    *,
    starts: bool = True,
) -> Engine:
    """The chosen engine.

    Args:
        settings: those of this invocation.
        engine: the flag's value.
        master: the flag's value.
        conf: the flag's values.
        size_bytes: about how much the job reads; None if that is not known.
        starts: whether a driver is started here.

    Raises:
        EngineMissing, MasterUnreachable: Spark cannot be started.
    """
    named = engine or settings.engine
    if named not in ENGINES:
        raise typer.BadParameter(f"--engine is one of {', '.join(ENGINES)}.")
    if named == AUTO:
        named = _by_size(settings, size_bytes or 0)
    if named == LOCAL:
        if master or conf:
            raise typer.BadParameter("--master and --conf are of --engine spark.")
        return LOCAL_ENGINE
    starts = starts and not settings.change.dry_run
    return _spark(master or settings.spark_master, conf or (), starts=starts)


def asks_size(settings: Settings, engine: str | None) -> bool:
    """Whether the size of a job decides."""
    return (engine or settings.engine) == AUTO


def _by_size(settings: Settings, size_bytes: int) -> str:
    from dss_spark.limits import AUTO_BYTES
    from dss_spark.submission import require_spark

    size = f"about {bytes_text(size_bytes)}"
    if size_bytes < AUTO_BYTES:
        note(settings, f"engine local: {size} are less than the {bytes_text(AUTO_BYTES)} for Spark")
        return LOCAL
    try:
        require_spark()
    except EngineMissing as missing:
        note(settings, f"engine local: for {size} Spark would be chosen, but {missing.message}")
        return LOCAL
    note(settings, f"engine spark: {size} are more than one process is for")
    return SPARK


def _spark(master: str, conf: Sequence[str], *, starts: bool) -> Engine:
    from dss_spark.submission import conf_of, require_master, require_spark

    try:
        conf_of(conf)
    except ValueError as wrong:
        raise typer.BadParameter(str(wrong)) from wrong
    if starts:
        require_spark()
        require_master(master)
    return Engine(SPARK, master, tuple(conf))

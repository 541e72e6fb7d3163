"""Creating a bulk job and starting its driver.

The driver is a process group of its own: it outlives this command, the terminal and a restart of
the daemon, and writes a log to the user's state directory. Invariant: a driver is started only for
a job that exists; if it dies, another one can take the job.
"""

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dssctl.changing import Changing, carry_out
from dssctl.config.keys import KEYS
from dssctl.config.resolving import CREDENTIALS
from dssctl.connection import ask
from dssctl.engines import LOCAL_ENGINE, Engine
from dssctl.job_logs import begin_log, log_path
from dssctl.nouns.jobs import JOB_KIND, job_item
from dssctl.output import note, show_one
from dssctl.quantities import moment_us, size_bytes
from dssctl.settings import Settings
from dssctl.started_driver import StartedDriver
from dssctl.tree import settings_of, showing

if TYPE_CHECKING:
    from dss_client import Client, Operation
    from dss_client.changes import CreateJob

JobName = Annotated[
    str, typer.Argument(metavar="NAME", help="The job's name: letters, digits, '.', '_', '-'.")
]
Source = Annotated[str, typer.Option("--from", metavar="TOPIC", help="The topic that is read.")]
Target = Annotated[str, typer.Option("--to", metavar="TOPIC", help="The topic that is written.")]
HopsMax = Annotated[
    int, typer.Option(min=0, help="Refuse records copied this often; 0: the default limit.")
]
AllowLoop = Annotated[
    bool, typer.Option("--allow-loop", help="Allow a job that writes to the topic that it reads.")
]
DeadLetters = Annotated[
    str | None,
    typer.Option(
        "--dead-letters",
        metavar="GROUP",
        help="Read the topic's dead letters in this group; --start, --end: times of death.",
    ),
]
Start = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Appended from then on; all that is kept where absent."),
]
End = Annotated[str | None, typer.Option(metavar="TIME", help="Appended before then.")]
Only = Annotated[
    str | None,
    typer.Option("--only", metavar="FILTER", help="Only these subjects, such as orders/eu/#."),
]
Chunk = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Bytes read for one commit, such as 32M; 64K to 128M."),
]
Rate = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Limit of bytes published a second, such as 10M.")
]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the end of the job.")]
Drive = Annotated[
    bool,
    typer.Option(
        "--drive/--no-drive", help="Start its driver here; without, any other machine may take it."
    ),
]


class Making(Changing):
    """A verb that creates a job; its --wait is for the job's end, as its operation has none."""

    def __init__(self, name: str | None, **attributes: Any) -> None:  # noqa: ANN401 -- Typer's own
        own = len(attributes.get("params") or [])
        super().__init__(name, **attributes)
        added = [each for each in self.params[own:] if "--no-wait" not in each.secondary_opts]
        self.params = [*self.params[:own], *added]


MakingAndTelling = showing(*Changing.kinds, JOB_KIND, command=Making)
"""A verb that shows the job's present state."""


def make_job(
    context: typer.Context,
    change: "CreateJob",
    engine: Engine = LOCAL_ENGINE,
    *,
    drive: bool,
    wait: bool = False,
    tells: bool = True,
) -> StartedDriver | None:
    """Plan, ask, create; then start the driver. If the caller prints something else, only that is
    data.

    If the end is awaited, the data is the final state of the job. Returns the driver, if one
    started.

    Raises:
        DssError: it cannot be created, or was declined.
    """
    started: StartedDriver | None = None

    def show(settings: Settings, operation: "Operation") -> None:
        from dssctl.nouns.operations import APPLIED_KIND, operation_item, operation_sections

        nonlocal started
        sections = list(operation_sections(operation))
        if tells and not wait:
            show_one(settings, APPLIED_KIND, operation_item(operation), sections)
        if drive:
            started = start_driver(settings, change.name, engine)
        else:
            note(settings, f"drive it: dssctl jobs drive {change.name}")

    carry_out(context, replace(change, engine=engine.name), show)
    settings = settings_of(context)
    if wait and not settings.change.dry_run:
        show_end(settings, change.name, started)
    return started


def show_end(settings: Settings, name: str, driver: StartedDriver | None) -> None:
    """Wait for the end of a job that was just created, and print how it ended.

    Raises:
        JobNotDone: it failed, or was cancelled.
        DriverEnded: its driver has ended, but the job has not.
        StillWaiting: it did not end in time.
    """
    from dssctl.job_waiting import require_job_done, wait_for_end_of

    job = wait_for_end_of(settings, name, driver)
    show_one(settings, JOB_KIND, job_item(job))
    require_job_done(job)


def start_driver(settings: Settings, job: str, engine: Engine) -> StartedDriver | None:
    """Start a process that drives the job, unless the job has ended."""
    found = ask(settings, lambda client: client.jobs.get(job))
    if found.has_ended:
        note(settings, f"job {job} has nothing to do")
        return None
    log = log_path(job)
    begin_log(log, found)
    command = engine.command(job, settings.endpoint, log.parent)
    pid = os.posix_spawn(
        command[0],
        command,
        _environment(settings),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    note(settings, f"its driver is process {pid}; what it says: dssctl jobs logs {job}")
    note(settings, f"wait for its end: dssctl jobs wait {job}")
    return StartedDriver(pid)


def _environment(settings: Settings) -> dict[str, str]:
    """The driver's environment: it reads the same files, without options on its command line for
    that."""
    said = {
        KEYS[name].variable: getattr(settings, name)
        for name in CREDENTIALS
        if getattr(settings, name) is not None
    }
    return {**os.environ, **said}


def source_bytes(settings: Settings, change: "CreateJob") -> int:
    """About how many bytes a job reads: all that its source keeps, unless it reads only a part."""

    async def asked(client: "Client") -> int:
        if change.dead_letters:
            dead = await client.topics.locate(change.source, dead_letters=change.dead_letters)
            return sum(each.bytes for each in dead)
        found = await client.topics.list()
        return sum(each.bytes for each in found if each.topic.name == change.source)

    return ask(settings, asked)


def time_us(text: str | None) -> int | None:
    """A time of the shared grammar in microseconds since 1970; none if none is given.

    Raises:
        IllegalTime: it is not a time.
    """
    return None if text is None else moment_us(text, now_us=time.time_ns() // 1_000)


def size_or_usual(text: str | None) -> int:
    """Bytes; 0 if nothing is given."""
    return 0 if text is None else size_bytes(text)

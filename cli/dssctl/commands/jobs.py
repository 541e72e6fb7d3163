"""``dssctl jobs``: bulk jobs of all kinds, as they stand, waited for and steered."""

from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.errors import JobNotFound, JobNotInState
from dssctl.arguments import IfExists
from dssctl.changing import Changing, Removing, Writing, carry_out
from dssctl.confirm import confirm_name_if_protected
from dssctl.connection import ask
from dssctl.driving import start_driver
from dssctl.engines import Conf, EngineName, Master, chosen
from dssctl.job_logs import JOB_LOG_KIND, told
from dssctl.job_waiting import follow_job, require_job_done, taken_soon, wait_for_job
from dssctl.listing import list_items, listing
from dssctl.nouns.jobs import CHUNK_KIND, JOB_KIND, chunk_item, job_item, what_next
from dssctl.output import Item, Section, show_list, show_one
from dssctl.page import page
from dssctl.removal import accepting, showing_removal
from dssctl.selection import ListRules, Named, Wanted
from dssctl.settings import ENGINES
from dssctl.tree import noun, settings_of, showing

if TYPE_CHECKING:
    from dss_client import Client, Job, JobChunk

app = noun("jobs")

Name = Annotated[str, typer.Argument(metavar="JOB", help="Its name.")]


@app.command("ls", cls=listing(JOB_KIND, ListRules(remembered="jobs", named=Named("[JOB]"))))
def list_jobs(context: typer.Context) -> None:
    """List bulk jobs: what they copy, how far they are, whether somebody drives them."""

    async def jobs(client: "Client", _wanted: Wanted) -> list[Item]:
        return [job_item(each) for each in await client.jobs.list()]

    list_items(context, jobs)


@app.command(cls=page(JOB_KIND, CHUNK_KIND))
def describe(
    context: typer.Context,
    name: Name,
    chunks: Annotated[
        bool, typer.Option("--chunks", help="Its manifest too: each chunk, what became of it.")
    ] = False,
) -> None:
    """Show a job: how far it is, why it failed, and what can be done about it."""
    settings = settings_of(context)

    async def found(client: "Client") -> "tuple[Job, list[JobChunk]]":
        job = await client.jobs.get(name)
        manifest = client.jobs.chunks(str(job.job_id))
        return job, [each async for each in manifest] if chunks else []

    job, manifest = ask(settings, found)
    item = {**job_item(job), "next": what_next(job)}
    sections = [Section("next")]
    if chunks:
        item["manifest"] = [chunk_item(each) for each in manifest]
        sections.append(Section("manifest", CHUNK_KIND))
    show_one(settings, JOB_KIND, item, sections)


@app.command(cls=showing(JOB_KIND))
def wait(context: typer.Context, name: Name) -> None:
    """Wait until a job has ended; fail unless it is done.

    It waits for any time unless --timeout is given. Ctrl-C ends the waiting; the job goes on.
    """
    settings = settings_of(context)
    job = ask(settings, lambda client: client.jobs.get(name))
    if not job.has_ended:
        job = wait_for_job(settings, job)
    show_one(settings, JOB_KIND, job_item(job))
    require_job_done(job)


@app.command(cls=showing(JOB_LOG_KIND))
def logs(
    context: typer.Context,
    name: Name,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Also print new lines, until the job has ended.")
    ] = False,
) -> None:
    """Print what its drivers said on this machine, and what the daemon told of it, by time."""
    settings = settings_of(context)
    job = ask(settings, lambda client: client.jobs.get(name))
    if follow:
        follow_job(settings, job)
    else:
        show_list(settings, JOB_LOG_KIND, ask(settings, lambda client: told(client, job)))


@app.command(cls=showing(JOB_KIND, command=Writing))
def drive(
    context: typer.Context,
    name: Name,
    engine: EngineName = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Start a driver of the job on this machine, or another one where the last one fell silent.

    It goes on behind the last chunk that is published, and outlives this command. Without
    --engine it is of the engine that the job was made for; the other one may go on, too.
    """
    settings = settings_of(context)
    confirm_name_if_protected(settings, "drive a job", name)
    job = ask(settings, lambda client: client.jobs.get(name))
    if job.has_ended or job.driver_lives:
        # The daemon would refuse the driver, but nobody would see that.
        state = job.state if job.has_ended else f"driven by {job.driver}"
        raise JobNotInState(job=job.name, state=state, asked="be driven")
    wanted = engine or (job.engine if job.engine in ENGINES else None)
    start_driver(settings, job.name, chosen(settings, wanted, master, conf))
    job = ask(settings, lambda client: taken_soon(client, str(job.job_id)))
    show_one(settings, JOB_KIND, job_item(job))


@app.command(cls=Changing)
def pause(context: typer.Context, name: Name) -> None:
    """Publish no further chunk until the job is resumed; its driver waits."""
    from dss_client.changes import PauseJob

    carry_out(context, PauseJob(name))


@app.command(cls=Changing)
def resume(context: typer.Context, name: Name) -> None:
    """Let a paused job publish again, from where it stood."""
    from dss_client.changes import ResumeJob

    carry_out(context, ResumeJob(name))


@app.command(cls=Removing)
def cancel(context: typer.Context, name: Name) -> None:
    """End a job for good. This cannot be undone.

    What it has published stays where it is; the rest is never published, and what it read is
    held no longer.
    """
    from dss_client.changes import CancelJob

    carry_out(context, CancelJob(name))


@app.command("rm", cls=Removing)
def remove(
    context: typer.Context,
    name: Name,
    if_exists: IfExists = False,
) -> None:
    """Forget a job that has ended. This cannot be undone.

    Its manifest goes, which says which records were published where; the records stay.
    """
    from dss_client.changes import RemoveJob

    with accepting(context, JobNotFound, name, if_exists=if_exists):
        carry_out(context, RemoveJob(name), showing_removal(name))

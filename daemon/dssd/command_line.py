"""The commands and options of ``dssd``.

Invariant: a command imports its modules when it runs, so help and version do not load the daemon.
Errors in a command line are conditions.
"""

import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from typer.main import get_command

from dss_core.errors import ExitCode, WrongUsage
from dssd.grpc_log import silence
from dssd.loading import loading

_TEMPORARY_PREFIX = "dssd-"

program = typer.Typer(
    name="dssd",
    help="The daemon of DSS: durable shared subscriptions.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

DataDir = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Where everything is kept; else $XDG_STATE_HOME/dssd or ~/.local/state/dssd.",
    ),
]


class ToldToServe(NamedTuple):
    """The options of ``dssd serve``, except for its directory."""

    listen: Sequence[str]
    file: Path | None
    metrics: str | None
    log_format: str | None
    reflection: bool
    tls: Mapping[str, Path | None]
    """By the keys of the file."""


class FindingsFormat(StrEnum):
    """How `dssd check` prints."""

    TEXT = "text"
    JSON = "json"


def run(words: Sequence[str]) -> int:
    """Run one command line; returns the exit code.

    Raises:
        WrongUsage: it is not understood.
        What `dssd.process.serve` and `dssd.check.command.check` raise.
    """
    try:
        with get_command(program).make_context("dssd", list(words)) as context:
            context.command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    except typer.TyperException as wrong:
        reason = wrong.format_message()
        if "\n" in reason:  # no command at all: the help
            sys.stderr.write(f"{reason}\n")
            return ExitCode.USAGE
        where = getattr(wrong, "ctx", None)
        if words and words[0].startswith("-"):
            meant = f"dssd serve {shlex.join(words)}"
            reason = f"{reason.rstrip('.')}. A daemon's options stand behind a command: {meant}"
        raise WrongUsage(reason=reason, command=where.command_path if where else "dssd") from wrong
    return ExitCode.OK


def _tell_version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


@program.callback()
def _program(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_tell_version, help="Print the version."),
    ] = False,
) -> None:
    """The daemon of DSS: durable shared subscriptions."""


@program.command()
def serve(
    context: typer.Context,
    data_dir: DataDir = None,
    dev: Annotated[
        bool,
        typer.Option("--dev", help="Keep everything in a temporary directory, removed at exit."),
    ] = False,
    listen: Annotated[
        list[str] | None,
        typer.Option(
            metavar="unix:PATH|HOST:PORT[,tls,clients=tokens|certs]",
            help="Where to listen, may be repeated; else dssd.sock in the data directory.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml", help="A file of options, with the names that they have here."
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve metrics to Prometheus on this port."),
    ] = None,
    log_format: Annotated[
        str | None, typer.Option(metavar="text|json", help="How the log on stderr is written.")
    ] = None,
    reflection: Annotated[
        bool, typer.Option("--reflection", help="Let tools like grpcurl ask what is served.")
    ] = False,
    tls_cert: Annotated[
        Path | None,
        typer.Option(metavar="FILE.pem", help="The certificate for addresses with tls."),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE.pem", help="Its key; read again on a change.")
    ] = None,
    tls_client_ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE.pem", help="Who signs the certificates of clients=certs."),
    ] = None,
) -> None:
    """Run a daemon until SIGTERM or SIGINT."""
    tls = {"tls_cert": tls_cert, "tls_key": tls_key, "tls_client_ca": tls_client_ca}
    told = ToldToServe(listen or [], config, metrics, log_format, reflection, tls)
    if not dev:
        _serve(data_dir, told)
        return
    if data_dir is not None:
        raise typer.BadParameter("--dev and --data-dir exclude each other.", ctx=context)
    directory = Path(tempfile.mkdtemp(prefix=_TEMPORARY_PREFIX))
    try:
        _serve(directory / "data", told, temporary=directory)
    finally:
        shutil.rmtree(directory)


@program.command(short_help="Check a data directory for damage.")
def check(
    data_dir: DataDir = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read all bytes of the log and verify them.")
    ] = False,
    output: Annotated[
        FindingsFormat, typer.Option("-o", "--output", help="How to print findings.")
    ] = FindingsFormat.TEXT,
) -> None:
    """Check a data directory for damage, while no daemon runs on it. Nothing is changed."""
    from dss_core.default_paths import default_data_dir

    with loading():
        from dssd.check.command import check as checked
    as_json = output is FindingsFormat.JSON
    raise typer.Exit(checked(data_dir or default_data_dir(), deep=deep, as_json=as_json))


Backups = Annotated[
    Path, typer.Argument(metavar="DIR", help="A directory that `dssctl backup create` wrote.")
]
Number = Annotated[
    int | None, typer.Option("--number", metavar="N", help="Its number; see dssctl backup ls.")
]


@program.command(short_help="Verify that backups can be restored.")
def verify(
    backups: Backups,
    number: Number = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Restore the newest elsewhere, and start a daemon on it.")
    ] = False,
    output: Annotated[
        FindingsFormat, typer.Option("-o", "--output", help="How to print findings.")
    ] = FindingsFormat.TEXT,
) -> None:
    """Verify the files of backups against their checksums. Nothing is changed."""
    with loading():
        from dssd.backups.command import verify as verified
    as_json = output is FindingsFormat.JSON
    raise typer.Exit(verified(backups, number=number, deep=deep, as_json=as_json))


@program.command(short_help="Make a data directory of a backup.")
def restore(
    backups: Backups,
    into: Annotated[
        Path, typer.Option("--into", metavar="NEW", help="A directory that is not there yet.")
    ],
    number: Number = None,
) -> None:
    """Make a data directory from a backup; from the newest if none is named."""
    with loading():
        from dssd.backups.command import restore as restored
    raise typer.Exit(restored(backups, into, number=number))


service = typer.Typer(
    name="service", help="Run the daemon as a service of systemd.", no_args_is_help=True
)
program.add_typer(service)


@service.callback()
def _service() -> None:
    """Run the daemon as a service of systemd."""


@service.command(short_help="Write the unit of the daemon, or print it.")
def install(
    context: typer.Context,
    user: Annotated[bool, typer.Option("--user", help="A service of your user manager.")] = False,
    system: Annotated[bool, typer.Option("--system", help="A service of the system.")] = False,
    run_as: Annotated[
        str, typer.Option(metavar="NAME", help="The user of a system service.")
    ] = "dssd",
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Else the usual one, or /var/lib/dssd with --system."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="The file for --config of `serve`.")
    ] = None,
    only_print: Annotated[bool, typer.Option("--print", help="Print it, write nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write it despite problems, or over another unit.")
    ] = False,
) -> None:
    """Write the unit of the daemon, and print the next commands. Nothing is started."""
    if user == system:
        raise typer.BadParameter("Say one of --user and --system.", ctx=context)
    from dssd.service.install import UnitRequest, printed
    from dssd.service.install import install as installed

    wanted = UnitRequest(of_system=system, run_as=run_as, data_dir=data_dir, config=config)
    sys.stdout.write(printed(wanted) if only_print else installed(wanted, force=force))
    sys.stdout.flush()


@program.command()
def version() -> None:
    """Print the version."""
    from dssd.version import version as installed

    sys.stdout.write(f"dssd {installed()}\n")
    sys.stdout.flush()


def _serve(data_dir: Path | None, told: ToldToServe, *, temporary: Path | None = None) -> None:
    silence()
    with loading():
        from dssd.config import configure
        from dssd.process import serve as serve_until_told

    config = configure(
        data_dir=data_dir,
        listen=told.listen,
        file=told.file,
        metrics=told.metrics,
        log_format=told.log_format,
        reflection=told.reflection,
        tls=told.tls,
    )
    serve_until_told(config, temporary=temporary)

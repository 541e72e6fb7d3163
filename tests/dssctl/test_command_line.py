"""The program from outside, without a daemon."""

import ast
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
import typer

import dssctl as package
from dss_core.errors import REGISTRY
from dssctl.explanations import EXPLANATIONS, explanation_of
from dssctl.settings import Format, Settings
from dssctl.tree import COMMANDS, root
from support.dssctl_call import run_dssctl

Run = Callable[..., subprocess.CompletedProcess[bytes]]

NOBODY = ("--endpoint", "unix:/nowhere/s")


@pytest.fixture
def mute_daemon() -> Iterator[str]:
    """Something that takes connections and calls, and answers none."""
    threads = ThreadPoolExecutor(1)
    server = grpc.server(threads, options=[("grpc.so_reuseport", 0)])
    over = threading.Event()

    def call(_request: bytes, _context: grpc.ServicerContext) -> bytes:
        over.wait()
        return b""

    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(call)
    methods = dict.fromkeys(("Status", "List"), handler)
    for service in ("Daemon", "Groups"):
        name = f"dss_api.v1.{service}"
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    over.set()
    server.stop(grace=None).wait()
    # What its threads say last must not be in what the next test reads.
    threads.shutdown()


def leaf_commands() -> Iterator[tuple[str, ...]]:
    """Every command that can be run."""
    program = root()
    context = typer.Context(program)
    for name in COMMANDS:
        command = program.get_command(context, name)
        verbs = getattr(command, "commands", None)
        yield from ((name, verb) for verb in verbs) if verbs else ((name,),)


@pytest.mark.parametrize("command", tuple(leaf_commands()), ids=" ".join)
def test_every_command_takes_the_global_options_after_its_name(
    command: tuple[str, ...], dssctl: Run
) -> None:
    help_text = dssctl(*command, "--help").stdout.decode()
    for option in ("--output", "--endpoint", "--timeout", "--color", "--no-headers", "--no-input"):
        assert option in help_text


@pytest.mark.parametrize("output", Format)
@pytest.mark.parametrize("before", [True, False])
def test_the_format_may_stand_before_and_after_the_verb(
    output: Format, before: bool, dssctl: Run
) -> None:
    options = ("-o", "template={code}" if output is Format.TEMPLATE else output)
    arguments = ("errors", "explain", "dss2001")
    line = (*options, *arguments) if before else (*arguments, *options)
    done = dssctl(*line)
    assert done.returncode == 0
    if output is Format.HELP:
        assert b"sentence" in done.stdout
    else:
        assert (b"DSS2001" in done.stdout) is (output is not Format.NONE)
    assert done.stderr == b""


@pytest.mark.parametrize("written", ["DSS6002", "dss6002", "6002", "SessionTakenOver"])
def test_a_code_is_found_by_its_digits_and_by_its_name(written: str, dssctl: Run) -> None:
    assert dssctl("errors", "explain", written, "-o", "name").stdout == b"DSS6002\n"


def test_an_explanation_says_what_is_certain_and_what_to_do(dssctl: Run) -> None:
    printed = dssctl("errors", "explain", "GroupNotFound").stdout
    assert b"nothing was done, for certain" in printed
    assert b"dssctl groups create" in printed
    assert b"it may have been done" in dssctl("errors", "explain", "5003").stdout


def test_every_code_has_a_paragraph_of_its_own() -> None:
    assert EXPLANATIONS.keys() == REGISTRY.keys()
    paragraphs = [explanation_of(code) for code in REGISTRY]
    assert len(set(paragraphs)) == len(paragraphs)
    assert [each for each in paragraphs if each.count(". ") < 1 or not each.endswith(".")] == []


def test_a_code_that_is_not_there_is_told_so(dssctl: Run) -> None:
    said = dssctl("errors", "explain", "9999").stderr.decode()
    assert "There is no such code: 9999." in said
    assert "hint: List them: dssctl errors ls" in said


def test_a_group_named_in_the_filter_and_beside_it_is_told_how_to_write_it(dssctl: Run) -> None:
    said = dssctl("consume", "$share/g/t/#", "--group", "g").stderr.decode()
    assert "hint: Use the filter alone: dssctl consume 't/#' --group g" in said


def test_a_filter_that_names_a_group_is_taken_apart_where_it_cannot_be_read(dssctl: Run) -> None:
    said = dssctl("consume", "$share/g/t/#", "--no-follow").stderr.decode()
    assert "($share/g/t/# is the filter t/# with --group g.)" in said


def test_of_two_formats_the_later_counts(dssctl: Run) -> None:
    done = dssctl("-o", "csv", "errors", "-o", "yaml", "explain", "DSS2001", "-o", "name")
    assert done.stdout == b"DSS2001\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--help",), 0),
        (("version",), 0),
        (("--version",), 0),
        (("version", "-o", "json"), 0),
        ((), 2),
        (("groups",), 2),
        (("nonsense",), 2),
        (("groups", "nonsense"), 2),
        (("groups", "ls", "--nonsense"), 2),
        (("groups", "ls", "-o", "xml"), 2),
        (("groups", "ls", "--timeout", "soon"), 2),
        (("groups", "ls", "--timeout", "-1"), 2),
        (("groups", "ls", "--endpoint", "nowhere"), 2),
        (("topics", "create", "t", "--partitions", "0"), 2),
        (("topics", "create", "t", "--retention", "7"), 2),
        (("produce", "t", "--key-field", "id"), 2),
        (("consume", "t", "--group", "g", "--no-follow"), 2),
        (("consume",), 2),
        (("consume", "--group", "g"), 2),
        (("consume", "t", "--group", "g", "--stream", "t/0/0"), 2),
        (("consume", "t", "--client-id", "anna"), 2),
        (("errors", "explain", "DSS9999"), 2),
        (("groups", "create", "/billing/orders/#"), 2),
        (("consume", "$share/g/t/#", "--group", "g"), 2),
        ((*NOBODY, "topics", "rm", "t"), 3),
        ((*NOBODY, "groups", "rm", "g"), 3),
        (("offsets", "rewind", "g"), 2),
        (("offsets", "rewind", "g", "--to", "earliest", "--by", "5"), 2),
        (("offsets", "skip", "g", "--by", "-5"), 2),
        (("offsets", "skip", "g", "--by", "5x"), 2),
        (("offsets", "seek", "g", "--to", "soon", "-y"), 2),
        (("offsets", "import", "g", "/nowhere/offsets.json", "-y"), 2),
        (("ops", "apply", "/nowhere/plan.json", "-y"), 2),
        (("ops", "show", "0"), 2),
        (("ops", "ls", "--group", "g", "--topic", "t"), 2),
        (("groups", "edit", "g", "-y"), 2),
        (("groups", "edit", "g", "--ack-wait", "30", "-y"), 2),
        (("groups", "pause", "g", "--until", "now", "-y"), 2),
        (("topics", "edit", "t", "-y"), 2),
        (("topics", "edit", "t", "--retention", "7d", "--no-retention", "-y"), 2),
        (("records", "skip", "g", "t/0/0", "-1", "-y"), 2),
        (("grants", "transfer", "g", "t/0/0", "-y"), 2),
        ((*NOBODY, "offsets", "rewind", "g", "--to", "earliest"), 3),
        ((*NOBODY, "ops", "cancel", "7"), 2),
        ((*NOBODY, "offsets", "rewind", "g", "--to", "earliest", "--if-revision", "x"), 2),
        ((*NOBODY, "offsets", "rewind", "g", "--to", "earliest", "-y"), 3),
        ((*NOBODY, "offsets", "rewind", "g", "--to", "earliest", "--dry-run"), 3),
        ((*NOBODY, "offsets", "export", "g"), 3),
        ((*NOBODY, "ops", "ls"), 3),
        ((*NOBODY, "ops", "wait", "7"), 3),
        ((*NOBODY, "borrowers", "evict", "g", "b", "-y"), 3),
        ((*NOBODY, "sessions", "close", "b", "-y"), 3),
        ((*NOBODY, "topics", "rm", "t", "-y"), 3),
        ((*NOBODY, "groups", "ls"), 3),
        ((*NOBODY, "topics", "ls"), 3),
        ((*NOBODY, "grants", "ls"), 3),
        ((*NOBODY, "daemon", "status"), 3),
        ((*NOBODY, "produce", "t"), 3),
        ((*NOBODY, "consume", "t"), 3),
        ((*NOBODY, "consume", "t", "--group", "g"), 3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_exit_codes(arguments: tuple[str, ...], code: int, dssctl: Run) -> None:
    done = dssctl(*arguments)
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    if code:
        assert done.stdout == b""
        assert done.stderr != b""


@pytest.mark.parametrize(
    "arguments",
    [("groups", "ls"), ("produce", "t"), ("consume", "t"), ("consume", "t", "--group", "g")],
    ids=" ".join,
)
def test_a_daemon_that_does_not_answer_is_a_timeout(
    arguments: tuple[str, ...], mute_daemon: str, dssctl: Run
) -> None:
    done = dssctl("--endpoint", mute_daemon, "--timeout", "0.3s", *arguments)
    assert done.returncode == 4, done.stderr.decode()
    assert b"DSS5004" in done.stderr


def test_an_error_is_json_on_stderr_where_json_was_asked_for(dssctl: Run) -> None:
    done = dssctl(*NOBODY, "groups", "ls", "-o", "json")
    assert done.stdout == b""
    assert json.loads(done.stderr)["code"] == "DSS5001"


def test_a_pipe_gets_no_escape_codes() -> None:
    for arguments in (("errors", "ls"), ("--help",), ("nonsense",), ("errors", "ls", "-o", "wide")):
        done = run_dssctl(*arguments)
        assert b"\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments",
    [("errors", "explain", "5001"), ("--help",), ("nonsense",), (*NOBODY, "produce", "t")],
    ids=" ".join,
)
def test_a_process_prints_and_returns_what_a_call_of_the_main_function_does(
    arguments: tuple[str, ...], dssctl: Run
) -> None:
    process, call = run_dssctl(*arguments, stdin=b"1\n"), dssctl(*arguments, stdin=b"1\n")
    assert (process.stdout, process.stderr) == (call.stdout, call.stderr)
    assert process.returncode == call.returncode


def test_a_reader_that_has_enough_ends_it_with_141() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "dssctl", "errors", "ls", "-o", "jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr as stderr:
        assert stderr.read() == b""
    assert process.wait() == 141


@pytest.mark.parametrize("arguments", [("errors", "ls"), ("--help",), ("version",)], ids=" ".join)
def test_an_output_that_takes_nothing_is_an_error_with_a_code(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - no file
        done = subprocess.run(
            [sys.executable, "-m", "dssctl", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 74
    assert done.stderr.startswith(b"error DSS1111: The output cannot be written: No space")
    assert b"Exception" not in done.stderr


def test_an_argument_that_is_no_text_is_named(dssctl: Run) -> None:
    done = dssctl("produce", "t", "--key", "\udcff")
    assert done.returncode == 2
    assert done.stderr.startswith(b"error DSS1101: ")
    assert b"b'\\xff' is not UTF-8" in done.stderr


def test_no_command_returns_what_would_be_discarded() -> None:
    # `return typer.Exit(1)` exits with 0.
    sources = Path(package.__file__).parent.rglob("*.py")
    returned = [
        f"{path}:{node.lineno}"
        for path in sources
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Return) and node.value is not None and "Exit(" in ast.dump(node)
        if "typer" in ast.unparse(node.value)
    ]
    assert returned == []


@pytest.mark.parametrize(
    ("words", "verbs"),
    [
        (["groups", "ls"], {"ls"}),
        (["group", "list", "--help"], {"ls"}),
        (["groups", "-o", "json", "ls"], None),
        (["groups", "--help"], None),
        (["groups", "lst"], None),
        (["groups"], None),
    ],
)
def test_of_the_verbs_of_a_noun_only_the_one_that_is_named_at_once_is_made(
    words: list[str], verbs: set[str] | None
) -> None:
    program = root()
    context = program.make_context("dssctl", list(words), obj=Settings())
    name, noun, rest = program.resolve_command(context, list(words))
    every = set(program.get_command(context, "groups").commands)
    assert len(every) > 5
    assert (name, rest, set(noun.commands)) == ("groups", words[1:], verbs or every)


@pytest.mark.parametrize("noun", ["grants", "borrowers"])
def test_a_group_is_named_behind_a_list_or_by_an_option_but_once(noun: str, dssctl: Run) -> None:
    assert dssctl(*NOBODY, noun, "ls", "billing").returncode == 3
    twice = dssctl(*NOBODY, noun, "ls", "billing", "-g", "billing")
    assert twice.returncode == 2
    assert b"the group is named twice" in twice.stderr


def test_the_help_of_a_noun_cuts_no_sentence(monkeypatch: pytest.MonkeyPatch, dssctl: Run) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    nouns = sorted({words[0] for words in leaf_commands() if len(words) == 2})
    for noun in nouns:
        listed = dssctl(noun, "--help").stdout.decode().partition("\n\nOptions:")[0]
        assert not listed.partition("Commands:")[2].count("..."), listed

"""Contexts and configuration, as their users meet them; no daemon is needed."""

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from support.dssctl_call import Completed, call_dssctl

Run = Callable[..., Completed]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "dssctl" / "config.toml"


@pytest.fixture
def run(path: Path) -> Run:
    def call(*arguments: str, **environment: str) -> Completed:
        return call_dssctl(*arguments, environ={"DSSCTL_CONFIG": str(path), **environment})

    return call


def items(done: Completed) -> list[dict[str, object]]:
    assert done.returncode == 0, done.stderr.decode()
    listed: list[dict[str, object]] = json.loads(done.stdout)["items"]
    return listed


def test_a_context_is_added_used_and_shown(run: Run, path: Path) -> None:
    added = run("contexts", "add", "prod", "--endpoint", "prod:7070", "--colour", "red")
    assert added.returncode == 0, added.stderr.decode()
    assert run("contexts", "use", "prod").returncode == 0
    [context] = items(run("contexts", "ls", "-o", "json"))
    assert context == {
        "name": "prod",
        "current": True,
        "endpoint": "prod:7070",
        "colour": "red",
        "read_only": False,
        "protected": False,
        "default_output": None,
        "spark_master": None,
        "token_file": None,
        "tls_ca": None,
        "tls_cert": None,
        "tls_key": None,
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(run("contexts", "show", "-o", "json").stdout)["item"] == context


def test_previous_goes_back_and_forth(run: Run) -> None:
    for name in ("a", "b"):
        run("contexts", "add", name)
        run("contexts", "use", name)
    assert run("contexts", "prompt").stdout == b"[b]\n"
    run("contexts", "previous")
    assert run("contexts", "prompt").stdout == b"[a]\n"
    run("contexts", "use", "-")
    assert run("contexts", "prompt").stdout == b"[b]\n"


def test_an_edit_leaves_what_it_does_not_name(run: Run) -> None:
    run("contexts", "add", "prod", "--endpoint", "prod:7070", "--colour", "red", "--read-only")
    edited = run("contexts", "edit", "prod", "--write", "--protected", "-o", "json")
    context = json.loads(edited.stdout)["item"]
    assert (context["endpoint"], context["colour"]) == ("prod:7070", "red")
    assert (context["read_only"], context["protected"]) == (False, True)
    cleared = run("contexts", "edit", "prod", "--colour", "", "-o", "json")
    assert json.loads(cleared.stdout)["item"]["colour"] is None


def test_a_removed_context_is_not_in_use_any_more(run: Run) -> None:
    run("contexts", "add", "prod")
    run("contexts", "use", "prod")
    assert run("contexts", "rm", "prod").returncode == 0
    assert run("contexts", "prompt").stdout == b""
    assert run("contexts", "rm", "prod").returncode == 5


def test_a_prompt_is_coloured_for_the_shell_and_marks_what_is_guarded(run: Run) -> None:
    run("contexts", "add", "prod", "--colour", "red", "--protected", "--read-only")
    run("contexts", "use", "prod")
    assert run("contexts", "prompt").stdout == b"\x1b[1;31m[prod! (read-only)]\x1b[0m\n"
    assert run("contexts", "prompt", NO_COLOR="1").stdout == b"[prod! (read-only)]\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("contexts", "use", "prd"), 5),
        (("contexts", "add", "prod"), 6),
        (("contexts", "add", "a b"), 2),
        (("contexts", "add", "other", "--colour", "mauve"), 2),
        (("contexts", "edit", "prod"), 2),
        (("contexts", "edit", "prd", "--colour", "red"), 5),
        (("contexts", "previous"), 2),
        (("contexts", "show"), 5),
        (("-c", "prd", "topics", "ls"), 5),
        (("-X", "outptu=json", "topics", "ls"), 2),
        (("-X", "output", "topics", "ls"), 2),
        (("config", "set", "outptu", "json"), 2),
        (("config", "set", "output", "xml"), 2),
        (("config", "set", "contexts.prod", "x"), 2),
        (("config", "set", "defaults.gruops ls.sort", "lag"), 2),
        (("config", "set", "contexts.prod.color", "red"), 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_exit_codes(arguments: tuple[str, ...], code: int, run: Run) -> None:
    run("contexts", "add", "prod")
    done = run(*arguments)
    assert done.returncode == code, done.stderr.decode()
    assert done.stdout == b""
    assert b"Traceback" not in done.stderr


def test_a_misspelt_context_suggests_the_one_that_is_there(run: Run) -> None:
    run("contexts", "add", "prod")
    assert b"Did you mean prod?" in run("-c", "prd", "topics", "ls").stderr


def test_a_value_is_set_shown_with_its_origin_and_unset(run: Run, path: Path) -> None:
    assert run("config", "set", "defaults.groups ls.sort", "lag").returncode == 0
    assert run("config", "set", "time", "iso").returncode == 0
    shown = items(run("config", "show", "--origin", "--for", "groups ls", "-o", "json"))
    by_key = {item["key"]: item for item in shown}
    assert by_key["time"]["value"] == "iso"
    assert by_key["time"]["origin"] == str(path)
    assert by_key["sort"]["origin"] == f'{path}, for "groups ls"'
    assert by_key["output"]["origin"] == "a flag"
    assert by_key["timeout"]["origin"] == "default"
    assert by_key["connect_wait"]["origin"] == "DSSCTL_CONNECT_WAIT"
    assert run("config", "unset", "time").returncode == 0
    assert "time" not in path.read_text()


def test_an_edit_keeps_comments_and_the_rest(run: Run, path: Path) -> None:
    path.parent.mkdir()
    path.write_text('# mine\ntime = "iso" # clocks\n\n[contexts.a]\nendpoint = "a:1"\n')
    run("config", "set", "output", "wide")
    run("contexts", "add", "b", "--endpoint", "b:1")
    text = path.read_text()
    assert text.startswith('# mine\ntime = "iso" # clocks\noutput = "wide"\n')
    assert '[contexts.b]\nendpoint = "b:1"\n' in text
    assert "[contexts]\n" not in text


def test_what_would_be_no_configuration_is_not_written(run: Run, path: Path) -> None:
    run("config", "set", "time", "iso")
    before = path.read_text()
    assert run("config", "set", "time", "late").returncode == 2
    assert path.read_text() == before


def test_a_broken_file_is_named_with_the_mistake(run: Run, path: Path) -> None:
    path.parent.mkdir()
    path.write_text('tmie = "iso"\n')
    done = run("topics", "ls")
    assert done.returncode == 78
    assert f"{path}" in done.stderr.decode()
    assert b"Did you mean time?" in done.stderr


def test_the_path_is_printed_though_there_is_no_file(run: Run, path: Path) -> None:
    done = run("config", "path")
    assert done.stdout.decode() == f"{path}\n"
    assert b"not there yet" in done.stderr


def test_a_read_only_context_refuses_changes_and_names_the_flag(run: Run) -> None:
    run("contexts", "add", "look", "--endpoint", "unix:/nowhere/s", "--read-only")
    for command in (("topics", "rm", "t", "-y"), ("produce", "t"), ("consume", "t/#", "-g", "g")):
        refused = run("-c", "look", *command)
        assert refused.returncode == 7, refused.stderr.decode()
        assert b"DSS1121" in refused.stderr
        assert b"--write" in refused.stderr
        assert run("-c", "look", "--write", *command).returncode == 3
    assert run("-c", "look", "topics", "rm", "t", "--dry-run").returncode == 3
    assert run("-c", "look", "consume", "t/#").returncode == 3
    assert (
        run("--read-only", "--endpoint", "unix:/nowhere/s", "topics", "create", "t").returncode == 7
    )


def test_a_protected_context_wants_a_reason_and_a_name(run: Run) -> None:
    run("contexts", "add", "prod", "--endpoint", "unix:/nowhere/s", "--protected")
    remove = ("-c", "prod", "topics", "rm", "t")
    assert b"DSS1122" in run(*remove, "-y").stderr
    assert run(*remove, "--reason", "T-1", "--confirm", "t").returncode == 3
    unnamed = run("-c", "prod", "topics", "create", "t")
    assert unnamed.returncode == 2
    assert b"--confirm" in unnamed.stderr
    wrong = run("-c", "prod", "topics", "create", "t", "--confirm", "other")
    assert wrong.returncode == 8
    assert b"nothing changed" in wrong.stderr
    assert run("-c", "prod", "topics", "create", "t", "--confirm", "t").returncode == 3


def test_validate_tells_each_context_that_nobody_answers_at(run: Run) -> None:
    run("contexts", "add", "gone", "--endpoint", "unix:/nowhere/s")
    done = run("contexts", "validate", "-o", "jsonl")
    assert done.returncode == 1
    assert json.loads(done.stdout)["problem"].startswith("DSS5001")


def test_a_file_that_cannot_be_written_is_told(run: Run, path: Path) -> None:
    path.parent.write_text("a file in place of the directory")
    done = run("config", "set", "time", "iso")
    assert done.returncode == 2
    assert b"File exists" in done.stderr


def test_a_socket_named_from_the_present_folder_is_kept_by_its_whole_path(run: Run) -> None:
    added = run("contexts", "add", "here", "--endpoint", "unix:run/../sock", "-o", "json")
    kept = str(Path.cwd() / "sock")
    assert json.loads(added.stdout)["item"]["endpoint"] == f"unix:{kept}"
    run("config", "set", "contexts.here.endpoint", "unix:other")
    [context] = items(run("contexts", "ls", "-o", "json"))
    assert context["endpoint"] == f"unix:{Path.cwd() / 'other'}"
    run("config", "set", "contexts.here.endpoint", "unix:~/sock")
    assert items(run("contexts", "ls", "-o", "json"))[0]["endpoint"] == "unix:~/sock"


def test_a_forgotten_endpoint_in_a_variable_is_told_of(run: Run) -> None:
    run("contexts", "add", "look", "--endpoint", "unix:/run/dss-a", "--read-only")
    away = {"DSSCTL_ENDPOINT": "unix:/run/dss-b", "DSSCTL_CONNECT_WAIT": "0"}
    listed = run("-c", "look", "topics", "ls", **away)
    assert b"note: DSSCTL_ENDPOINT sends this to unix:/run/dss-b" in listed.stderr
    refused = run("-c", "look", "topics", "rm", "t", **away)
    assert refused.returncode == 7
    assert b"the context look is read-only" in refused.stderr
    assert b"note" not in run("-c", "look", "topics", "ls", "--endpoint", "unix:/run/b").stderr

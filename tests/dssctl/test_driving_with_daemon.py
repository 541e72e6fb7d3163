"""Bulk jobs from the command line: made, driven by a process of its own, waited for."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.dssctl_call import Completed, Daemon


@pytest.fixture
def dssctl(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Completed]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(*arguments: str, stdin: bytes = b"", code: int = 0) -> Completed:
        done = daemon.dssctl(*arguments, stdin=stdin)
        assert done.returncode == code, done.stderr.decode()
        return done

    return run


def job(dssctl: Callable[..., Completed], name: str) -> dict[str, object]:
    dssctl("jobs", "wait", name, "--timeout", "60")
    found = json.loads(dssctl("jobs", "describe", name, "-o", "json").stdout)["item"]
    assert isinstance(found, dict)
    return found


def test_rows_go_in_are_copied_and_come_out_again(
    dssctl: Callable[..., Completed], tmp_path: Path
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("k,n\n" + "".join(f"k{n % 5},{n}\n" for n in range(50)))
    for topic in ("rows", "rows2"):
        dssctl("topics", "create", topic, "--partitions", "2")
    dssctl("backfills", "create", "in", str(rows), "--to", "rows", "--key", "k", "--yes")
    assert job(dssctl, "in")["records"] == 50
    said = dssctl("jobs", "logs", "in", "-f", "-o", "jsonl").stdout
    lines = [json.loads(line) for line in said.splitlines()]
    assert {"driver", "daemon"} == {line["by"] for line in lines}
    assert any("published 1" in line["text"] for line in lines)
    assert sum(line["text"].startswith("job.taken") for line in lines) == 1
    dssctl("replays", "create", "over", "--from", "rows", "--to", "rows2", "--yes")
    assert job(dssctl, "over")["records"] == 50
    out = tmp_path / "out"
    exported = ("exports", "create", "out", "--from", "rows2", "--to", str(out), "--yes", "--wait")
    told = dssctl(*exported).stderr.decode()
    assert "50 records, " in told
    assert f" in {out}/run=000001" in told
    assert f"below {out}".encode() in dssctl("jobs", "describe", "out").stdout
    assert [path.name for path in sorted(out.iterdir())] == ["_dss_export.json", "run=000001"]
    again = dssctl("exports", "create", "out2", "--from", "rows2", "--to", str(out), "--yes")
    assert b"nothing of rows2 is new" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (("--key", "none"), b"it has no column none, but k, n", 2),
        (("--key", "k", "--null-key", "perhaps"), b"refuse, keyless", 2),
        (("--key", "k", "--subject", "other/{n}"), b"outside the patterns", 2),
        (("--time-column", "k"), b"its k is no time: a", 1),
        (("--types", "k=int64"), b"its k is no int64: a", 1),
        (("--types", "k=number"), b"timestamp[us]", 2),
        (("--subject", "bad-rows/{k"), b"a brace without the other one", 2),
    ],
)
def test_a_backfill_that_cannot_be_makes_no_job(
    dssctl: Callable[..., Completed],
    tmp_path: Path,
    arguments: tuple[str, ...],
    said: bytes,
    code: int,
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("k,n\na,1\n")
    dssctl("topics", "create", "bad-rows", "--partitions", "1", "--if-not-exists")
    files = ("backfills", "create", "bad", str(rows), "--to", "bad-rows", "--yes")
    refused = dssctl(*files, *arguments, code=code)
    assert said in refused.stderr
    dssctl("jobs", "describe", "bad", code=5)


def test_rows_without_a_key_are_refused_before_anything_is_published(
    dssctl: Callable[..., Completed], tmp_path: Path
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"k":"a"}\n{"k":null}\n')
    dssctl("topics", "create", "keyed", "--partitions", "1")
    files = ("backfills", "create", "keys", str(rows), "--to", "keyed", "--key", "k", "--yes")
    refused = dssctl(*files, code=1)
    assert b"the first is row 1 of" in refused.stderr
    dssctl(*files, "--rejects", str(tmp_path / "rejects"), "--no-drive")
    assert b"none" in dssctl("jobs", "ls").stdout
    dssctl("jobs", "drive", "keys")
    assert job(dssctl, "keys")["records"] == 1

"""What a bundle tells, once somebody else has it."""

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from dss_core.errors import DocumentUnreadable, InputUnreadable
from dssctl.doctor.finding import Level
from dssctl.support import reading
from dssctl.support.analyzing import findings_in
from dssctl.support.bundle import KIND, MANIFEST, bundle_at
from dssctl.support.reading import read_bundle

ABOUT = {"kind": KIND, "gathered_at": "2026-11-22T22:23:51Z", "names_hidden": True}
STUCK = {"check": "groups.stuck", "level": "problem", "text": "g stands", "remedy": "dssctl x"}


def bundle(path: Path, missing: dict[str, str] | None = None, **files: list[str]) -> Path:
    """A bundle with these files, in which `__` stands for a slash and `_` for a dot."""
    with bundle_at(path / "b.tar.gz", 0) as written:
        for name, lines in files.items():
            written.add(name.replace("__", "/").replace("_", "."), "what", lines)
        for name, why in (missing or {}).items():
            written.miss(name, why)
        written.close(ABOUT)
    return path / "b.tar.gz"


def packed(path: Path, **files: bytes) -> Path:
    """An archive that nobody gathered."""
    with tarfile.open(path / "x.tar.gz", "w:gz") as archive:
        for name, content in files.items():
            facts = tarfile.TarInfo(f"x/{name.replace('_', '.')}")
            facts.size = len(content)
            archive.addfile(facts, io.BytesIO(content))
    return path / "x.tar.gz"


def found(path: Path) -> dict[str, tuple[Level, str, str]]:
    return {
        each.check: (each.level, each.text, each.remedy) for each in findings_in(read_bundle(path))
    }


def test_what_the_doctor_found_is_told_as_it_was(tmp_path: Path) -> None:
    told = found(bundle(tmp_path, doctor_jsonl=[json.dumps(STUCK)], journal_log=["serving"]))
    assert told["groups.stuck"] == (Level.PROBLEM, "g stands", "dssctl x")
    assert told["bundle.whole"][:2] == (
        Level.OK, "gathered 2026-11-22T22:23:51Z, 2 files, names taken out"
    )  # fmt: skip
    assert told["logs.codes"][0] is Level.OK
    assert set(told) == {"groups.stuck", "bundle.whole", "logs.codes"}


def test_logs_and_events_are_searched_for_errors(tmp_path: Path) -> None:
    trace = ["Traceback (most recent call last):", "KeyError: 7", "error DSS5007: no DSS5007"]
    events = [json.dumps({"severity": "error", "code": "stream.damaged"}), "{}", "no JSON"]
    told = found(bundle(tmp_path, logs__dssd_log=trace, events_jsonl=events))
    assert told["logs.tracebacks"][:2] == (
        Level.PROBLEM, "logs/dssd.log has 1 traceback: a mistake of the program."
    )  # fmt: skip
    assert told["logs.codes"][1:] == (
        "logs/dssd.log names DSS5007 in 1 line.", "dssctl errors explain DSS5007"
    )  # fmt: skip
    assert told["events.errors"][1] == "1 error among 2 events: stream.damaged 1."


def test_what_is_missing_or_cut_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dssctl.support.bundle.BUNDLE_ENTRY_BYTES_MAX", 10)
    missing = {"groups.jsonl": "DSS5001: nobody", "config.toml": "there is none"}
    told = found(bundle(tmp_path, missing, topics_jsonl=["x" * 8, "y" * 8]))
    assert told["bundle.answers"][1] == "groups.jsonl is missing: DSS5001: nobody"
    assert "topics.jsonl" in told["bundle.cut"][1]
    assert told["logs.there"][0] is Level.WARNING


def test_a_file_that_was_changed_since_is_a_problem(tmp_path: Path) -> None:
    entries = [{"name": "groups.jsonl", "sha256": "0", "cut": False}]
    manifest = {**ABOUT, "entries": entries, "missing": []}
    path = packed(tmp_path, manifest_json=json.dumps(manifest).encode(), groups_jsonl=b"{}\n")
    assert found(path)["bundle.whole"][:2] == (
        Level.PROBLEM, "Not as they were gathered: groups.jsonl."
    )  # fmt: skip


OTHER = {**ABOUT, "format": 2, "dssctl": "9.1"}


def test_a_bundle_of_another_format_is_read_and_the_doubt_is_told(tmp_path: Path) -> None:
    manifest = json.dumps({**OTHER, "entries": [], "missing": []}).encode()
    packed_there = packed(tmp_path, manifest_json=manifest, doctor_jsonl=json.dumps(STUCK).encode())
    told = found(packed_there)
    level, text, remedy = told["bundle.format"]
    assert (level, remedy) == (Level.WARNING, "Analyze it with dssctl 9.1")
    assert "format 2, gathered by dssctl 9.1" in text
    assert told["groups.stuck"][0] is Level.PROBLEM


def test_a_bundle_that_cannot_be_read_for_its_format_is_refused_by_that(tmp_path: Path) -> None:
    path = packed(tmp_path, manifest_json=json.dumps({**OTHER, "parts": {}}).encode())
    with pytest.raises(DocumentUnreadable, match="it is of format 2, this dssctl knows 1"):
        read_bundle(path)


def test_what_this_version_does_not_know_is_told(tmp_path: Path) -> None:
    strange = [json.dumps({**STUCK, "level": "grave"}), "no JSON"]
    told = found(bundle(tmp_path, doctor_jsonl=strange, journal_log=["serving"]))
    assert told["bundle.unknown"][1] == "doctor.jsonl has 2 lines that this dssctl cannot read."
    assert "groups.stuck" not in told
    (tmp_path / "b.tar.gz").unlink()
    told = found(bundle(tmp_path, crystals_jsonl=["{}"], journal_log=["serving"]))
    assert told["bundle.unknown"][1] == (
        "Nothing is known of these files, and nobody looked at them: crystals.jsonl."
    )


@pytest.mark.parametrize(
    "content",
    [
        b"plain text",
        gzip.compress(b"no archive"),
        gzip.compress(b"x" * 9_000)[:-20],
        {},
        {"manifest_json": b"{"},
        {"manifest_json": b"[]"},
        {"manifest_json": b'{"kind": "DssSupport"}'},
        {"manifest_json": b'{"kind": "DssSupport", "entries": [7], "missing": []}'},
        {"manifest_json": b'{"kind": "another", "entries": [], "missing": []}'},
    ],
)
def test_what_is_no_bundle_is_refused(content: bytes | dict[str, bytes], tmp_path: Path) -> None:
    if isinstance(content, bytes):
        path = tmp_path / "x.tar.gz"
        path.write_bytes(content)
    else:
        path = packed(tmp_path, **content)
    with pytest.raises(DocumentUnreadable, match="is not a bundle"):
        read_bundle(path)


def test_no_more_is_read_than_a_bundle_may_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bundle(tmp_path, topics_jsonl=["x" * 100])
    assert MANIFEST in read_bundle(path).files
    for bound in ("BUNDLE_BYTES_MAX", "BUNDLE_FILES_MAX"):
        with monkeypatch.context() as patched:
            patched.setattr(reading, bound, 1)
            patched.setattr(reading, "BUNDLE_ENTRY_BYTES_MAX", 1)
            with pytest.raises(DocumentUnreadable, match="more than a bundle may"):
                read_bundle(path)


def test_a_file_that_is_not_there_is_told_as_that(tmp_path: Path) -> None:
    with pytest.raises(InputUnreadable, match="No such file"):
        read_bundle(tmp_path / "nothing")

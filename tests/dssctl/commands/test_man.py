"""`dssctl man`: pages, found by whatever name, without a terminal."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.dssctl_call import Completed

Run = Callable[..., Completed]


@pytest.mark.parametrize(
    ("asked", "heading"),
    [
        ((), b"DSSCTL(1)"),
        (("groups",), b"DSSCTL-GROUPS(1)"),
        (("dssctl-groups",), b"DSSCTL-GROUPS(1)"),
        (("dssctl-errors.7",), b"DSSCTL-ERRORS(7)"),
        (("errors.7",), b"DSSCTL-ERRORS(7)"),
        (("errors",), b"DSSCTL-ERRORS(1)"),
        (("dssd.toml",), b"DSSD.TOML(5)"),
        (("dssd",), b"DSSD(8)"),
    ],
)
def test_a_page_is_found_by_its_name_with_or_without_its_beginning_and_section(
    asked: tuple[str, ...], heading: bytes, dssctl: Run
) -> None:
    done = dssctl("man", *asked)
    assert (done.returncode, done.stderr) == (0, b"")
    # `man` strikes letters twice where it cannot make them bold.
    assert heading in done.stdout.replace(b"\x08", b"")


def test_a_page_that_is_not_there_is_refused_with_what_may_be_meant(dssctl: Run) -> None:
    done = dssctl("man", "groops")
    assert done.returncode == 2
    assert b"did you mean dssctl-groups" in done.stderr


def test_the_folder_of_all_pages_is_what_man_can_be_told(dssctl: Run) -> None:
    folder = Path(dssctl("man", "--path").stdout.decode().strip())
    assert (folder / "man1/dssctl.1").is_file()


def test_without_any_reader_the_source_is_printed_and_that_is_said(
    dssctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = dssctl("man", "version")
    assert done.returncode == 0
    assert b".SH NAME" in done.stdout
    assert b"no man, mandoc or groff" in done.stderr

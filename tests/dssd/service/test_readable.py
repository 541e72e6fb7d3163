"""Whether a user may read a file, by the modes on the way to it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dssd.service.readable import Reader
from support.daemon_process import short_directory

STRANGER = Reader(-1, frozenset())


@pytest.fixture
def file() -> Iterator[Path]:
    """In a directory in a directory, which all may enter."""
    with short_directory() as outer:
        path = outer / "inner" / "file"
        path.parent.mkdir()
        path.write_text("x")
        for each, mode in ((outer, 0o755), (path.parent, 0o755), (path, 0o644)):
            each.chmod(mode)
        yield path


def test_the_first_directory_that_is_closed_is_named(file: Path) -> None:
    assert STRANGER.stopped_at(file) is None
    file.parent.chmod(0o744)
    assert STRANGER.stopped_at(file) == file.parent
    file.parent.chmod(0o711)
    assert STRANGER.stopped_at(file) is None
    file.chmod(0o600)
    assert STRANGER.stopped_at(file) == file


def test_owners_and_groups_go_by_their_own_modes(file: Path) -> None:
    found = file.stat()
    owner, member = Reader(found.st_uid, frozenset()), Reader(-1, frozenset({found.st_gid}))
    file.chmod(0o040)
    assert member.stopped_at(file) is None
    file.chmod(0o404)
    assert member.stopped_at(file) == file
    assert owner.stopped_at(file) is None
    assert Reader(0, frozenset()).stopped_at(file) is None


def test_a_link_is_followed_on_both_ways(file: Path) -> None:
    link = file.parents[1] / "link"
    link.symlink_to(file)
    file.parent.chmod(0o700)
    assert STRANGER.stopped_at(link) == file.parent


def test_a_user_of_this_machine_has_its_groups() -> None:
    assert Reader.named("root").user == 0
    assert os.getgid() in Reader.named("root").groups or os.getuid()
    assert Reader.named("nobody-like-this").user == -1

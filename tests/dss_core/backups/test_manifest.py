"""Manifests: written, read again, and those that lie."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from dss_core.backups.manifest import BackedUpFile, decoded, encoded
from dss_core.errors import BackupDamaged, BackupNewer
from support.backed_up import manifest

STORE = BackedUpFile("store.sqlite", 7, "0" * 32)
WHOLE = manifest(number=3, files=(STORE, BackedUpFile(f"log/{2:08x}-{3:016x}.seg", 64, "a" * 32)))


def test_a_manifest_is_read_as_it_was_written() -> None:
    assert decoded(encoded(WHOLE), "x") == WHOLE
    assert WHOLE.bytes == 71


def test_every_flipped_bit_of_a_manifest_is_seen() -> None:
    content = encoded(manifest(number=1, files=(STORE,)))
    for at in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[at] ^= 1 << bit
            try:
                read = decoded(bytes(flipped), "x")
            except (BackupDamaged, BackupNewer):
                continue
            assert read == manifest(number=1, files=(STORE,)), (at, bit)  # a blank, or a case


def forged(change: Callable[[dict[str, Any]], None]) -> bytes:
    """A manifest with a right checksum that no tool of ours writes."""
    from dss_core.backups.manifest import _sum

    values = json.loads(encoded(WHOLE))
    del values["checksum"]
    change(values)
    return json.dumps({**values, "checksum": _sum(values)}).encode()


@pytest.mark.parametrize(
    "name",
    ["../evil", "/etc/passwd", "log/../../x.seg", "LOCK", "log/1-2.seg", "store.sqlite\n", ""],
)
def test_a_manifest_names_no_file_that_a_daemon_would_not(name: str) -> None:
    with pytest.raises(BackupDamaged):
        decoded(forged(lambda values: values["files"][1].update(name=name)), "x")


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values["files"][1].update(checksum="../" * 10 + "aa"),
        lambda values: values["files"][1].update(bytes=-1),
        lambda values: values["files"][1].update(modified_ns="1"),
        lambda values: values["files"].pop(0),
        lambda values: values["files"].append(values["files"][0]),
        lambda values: values.update(ends={"x": [1]}),
        lambda values: values.update(ends=[[]]),
        lambda values: values.update(ends={"1": [float("inf")]}),
        lambda values: values.pop("incarnation"),
        lambda values: values.update(more=1),
    ],
)
def test_a_manifest_that_lies_is_refused(change: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(BackupDamaged):
        decoded(forged(change), "x")


def test_one_of_a_newer_version_says_so() -> None:
    with pytest.raises(BackupNewer):
        decoded(forged(lambda values: values.update(format=2)), "x")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b"\xff",
        b"[" * 100_000,
        b'{"checksum": "", "format": Infinity}',
    ],
)
def test_what_is_no_manifest_is_damage(content: bytes) -> None:
    with pytest.raises(BackupDamaged):
        decoded(content, "x")

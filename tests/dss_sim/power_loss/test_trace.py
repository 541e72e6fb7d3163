"""From lines of strace to operations."""

import pytest

from dss_sim.power_loss.operations import (
    MakeDirectory,
    OpenFile,
    Operation,
    Rename,
    Reserve,
    Resize,
    Sync,
    Tell,
    Unlink,
    Write,
)
from dss_sim.power_loss.trace import NEVER, NotUnderstood, TraceReader


def hexed(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def path(name: str) -> str:
    return f'"{hexed(f"/root/{name}")}"'


def opening(name: str, fd: int, flags: str = "O_RDWR|O_CREAT|O_CLOEXEC") -> str:
    return f"7 openat(AT_FDCWD, {path(name)}, {flags}, 0600) = {fd}"


def operations(*lines: str) -> list[Operation]:
    return [step.operation for step in TraceReader("/root").steps(lines)]


def test_every_kind_of_change_is_read() -> None:
    found = operations(
        f"7 mkdir({path('d')}, 0700) = 0",
        opening("d/f", 3),
        f'7 pwrite64(3, "{hexed("abc")}", 3, 7) = 3',
        f'7 pwritev(3, [{{iov_base="{hexed("a")}", iov_len=1}}, '
        f'{{iov_base="{hexed("b")}", iov_len=1}}], 2, 9) = 2',
        f'7 pwritev2(3, [{{iov_base="{hexed("cd")}", iov_len=2}}], 1, 11, 0) = 2',
        "7 ftruncate(3, 5)  = 0",
        "7 fallocate(3, 0, 0, 4096) = 0",
        "7 fdatasync(3) = 0",
        "7 close(3) = 0",
        f"7 rename({path('d/f')}, {path('d/g')}) = 0",
        f"7 unlink({path('d/g')}) = 0",
    )
    assert found == [
        MakeDirectory("d"),
        OpenFile(1, "d/f", create=True),
        Write(1, 7, b"abc"),
        Write(1, 9, b"ab"),
        Write(1, 11, b"cd"),
        Resize(1, 5),
        Reserve(1, 4096),
        Sync(1),
        Rename("d/f", "d/g"),
        Unlink("d/g"),
    ]


def test_a_write_without_an_offset_goes_on_where_the_last_one_ended() -> None:
    first, second, third = operations(
        opening("f", 3),
        f'7 write(3, "{hexed("ab")}", 2) = 2',
        f'7 write(3, "{hexed("cd")}", 2) = 1',
        "7 lseek(3, 0, SEEK_SET) = 0",
        f'7 write(3, "{hexed("e")}", 1) = 1',
    )[1:]
    assert (first, second, third) == (Write(1, 0, b"ab"), Write(1, 2, b"c"), Write(1, 0, b"e"))


def test_what_is_told_counts_before_a_sync_that_has_not_returned() -> None:
    found = operations(
        opening("f", 3),
        f'7 write(3, "{hexed("x")}", 1) = 1',
        "7 fdatasync(3 <unfinished ...>",
        f'8 write(1, "{hexed("acked" + chr(10))}", 6) = 6',
        "7 <... fdatasync resumed>) = 0",
    )
    assert found[-2:] == [Tell("acked"), Sync(1)]


def test_a_descriptor_is_free_as_soon_as_its_close_begins() -> None:
    found = operations(
        opening("f", 3),
        "7 close(3 <unfinished ...>",
        f"8 openat(AT_FDCWD, {path('g')}, O_WRONLY|O_CREAT|O_TRUNC, 0600) = 3",
        "7 <... close resumed>) = 0",
        f'8 write(3, "{hexed("x")}", 1) = 1',
    )
    assert found[1:] == [OpenFile(2, "g", create=True, truncate=True), Write(2, 0, b"x")]


def test_a_write_that_the_end_interrupted_is_given_without_an_end() -> None:
    lines = [opening("f", 3), f'7 pwrite64(3, "{hexed("ab")}", 2, 0) = ?', "7 fsync(3) = ?"]
    _, step = TraceReader("/root").steps(lines)
    assert (step.operation, step.ended) == (Write(1, 0, b"ab"), NEVER)


def test_a_threads_last_call_with_the_result_of_another_one_is_taken_for_interrupted() -> None:
    lines = [
        opening("f", 3),
        f'7 pwrite64(3, "{hexed("abc")}", 3, 0 <unfinished ...>',
        "8 fdatasync(3 <unfinished ...>",
        f'9 write(1, "{hexed("x" + chr(10))}", 2) = 2',
        "7 <... pwrite64 resumed>) = 2",
        "8 <... fdatasync resumed>) = 2",
    ]
    _, written, told = TraceReader("/root").steps(lines)
    assert (written.operation, written.ended) == (Write(1, 0, b"abc"), NEVER)
    assert told.operation == Tell("x")


def test_a_file_is_perhaps_created_by_a_call_that_the_end_interrupted() -> None:
    [step] = TraceReader("/root").steps(
        [f"7 openat(AT_FDCWD, {path('f')}, O_WRONLY|O_CREAT, 0600) = ?"]
    )
    assert (step.operation, step.ended) == (OpenFile(1, "f", create=True), NEVER)


def test_lines_and_handles_go_on_from_process_to_process() -> None:
    reader = TraceReader("/root")
    [first] = reader.steps([opening("f", 3)])
    [second] = reader.steps([opening("f", 3)])
    assert second.began > first.ended
    assert second.operation == OpenFile(2, "f", create=True)


def test_files_elsewhere_are_left_out() -> None:
    elsewhere = [
        f'7 openat(AT_FDCWD, "{hexed("/rooted/f")}", O_RDWR|O_CREAT, 0600) = 3',
        f'7 write(3, "{hexed("x")}", 1) = 1',
        "7 fsync(3) = 0",
        f'7 rename("{hexed("/a")}", "{hexed("/b")}") = 0',
    ]
    assert operations(*elsewhere) == []


def test_calls_that_failed_change_nothing() -> None:
    assert operations(f"7 mkdir({path('d')}, 0700) = -1 EEXIST (File exists)") == []
    assert operations(f"7 unlink({path('d')}) = -1 ENOENT (No such file or directory)") == []


@pytest.mark.parametrize(
    "line",
    [
        f'7 pwrite64(3, "{hexed("x")}"..., 9, 0) = 9',
        "7 fdatasync(3) = -1 EIO (Input/output error)",
        f"7 link({path('f')}, {path('g')}) = 0",
        f'7 rename({path("f")}, "{hexed("/elsewhere")}") = 0',
        "7 dup(3) = 4",
        "7 fallocate(3, 0x3, 0, 10) = 0",
        opening("log", 5, "O_WRONLY|O_APPEND"),
    ],
)
def test_what_the_model_cannot_follow_is_an_error(line: str) -> None:
    with pytest.raises(NotUnderstood):
        operations(opening("f", 3), line)

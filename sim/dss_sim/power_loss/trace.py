"""Turns what strace says of a process into its operations on files below a directory.

A step is placed where it could first have its effect: a change where it began, a sync where it
returned, an answer just before it was given. So nothing counts as durable too early, or as told too
late. A sync covers what had *returned* before it began (`Step` has both).

A call that the end of the process interrupted may or may not have happened; its step ends `NEVER`.
strace shows it without a result, or with the result that another thread's call had just before: a
thread's last call counts as interrupted if it cannot have the result shown.

Invariant: a call that changes a file below the root and is not understood is an error, and so is a
call that strace did not show in full. The trace must come from `-f -xx` with all `CALLS`.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dss_sim.power_loss.operations import (
    MakeDirectory,
    OpenFile,
    Operation,
    Rename,
    Reserve,
    Resize,
    Step,
    Sync,
    Tell,
    Unlink,
    Write,
)
from dss_sim.strace import SystemCall, calls_of

RETURN_0 = ("ftruncate", "fallocate", "rename", "unlink", "mkdir", "fsync", "fdatasync")
RETURN_COUNT = ("write", "pwrite64", "pwritev", "pwritev2")
UNDERSTOOD = ("openat", "close", "lseek", *RETURN_0, *RETURN_COUNT)
REFUSED = (
    *("open", "creat", "openat2", "writev", "truncate", "renameat", "renameat2", "unlinkat"),
    *("mkdirat", "rmdir", "link", "linkat", "symlink", "symlinkat", "dup", "dup2", "dup3"),
    *("sendfile", "copy_file_range", "splice", "sync_file_range", "syncfs", "sync"),
)
CALLS = (*UNDERSTOOD, *REFUSED)
TOLD_FD = 1
"""The descriptor to which the process writes its facts, one per line."""

NEVER = sys.maxsize

_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')


class NotUnderstood(Exception):
    """The trace holds something that the model cannot follow."""


@dataclass(slots=True)
class _Descriptor:
    handle: int
    position: int = 0


class TraceReader:
    """Reads the traces of one or several processes that ran one after the other."""

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/")
        self._handles = 0
        self._lines = 0
        self._open: dict[int, _Descriptor] = {}

    def steps(self, lines: Iterable[str]) -> list[Step]:
        """The steps of the next process, in the order of their effects.

        Raises:
            NotUnderstood: the model cannot follow.
        """
        whole = list(lines)
        first, self._lines = self._lines, self._lines + len(whole)
        self._open = {}
        calls = sorted(_with_doubts(calls_of(whole)), key=_place_of)
        return [
            Step(operation, first + call.began, _end_of(call, first))
            for call in calls
            for operation in self._operations(call)
        ]

    def _operations(self, call: SystemCall) -> Iterator[Operation]:
        failed = call.result.startswith(("-", "?"))
        match call.name:
            case "close":
                self._open.pop(int(call.arguments), None)
            case "openat":
                if _is_interrupted(call):
                    yield from self._perhaps_created(call)
                elif not failed:
                    yield from self._opened(call)
            case "rename" | "unlink" | "mkdir":
                if not failed or _is_interrupted(call):
                    yield from self._named(call)
            case name if name in UNDERSTOOD:
                yield from self._on_descriptor(call, failed=failed)
            case _:
                if not failed:
                    self._refuse_if_ours(call)

    def _opened(self, call: SystemCall) -> Iterator[Operation]:
        path = self._below_root(_strings(call)[0])
        fd = int(call.result.split()[0])
        self._open.pop(fd, None)
        if path is None:
            return
        flags = set(re.findall(r"O_\w+", call.arguments))
        if "O_APPEND" in flags or "O_DIRECT" in flags:
            raise NotUnderstood(call)
        self._handles += 1
        self._open[fd] = _Descriptor(self._handles)
        yield OpenFile(self._handles, path, "O_CREAT" in flags, "O_TRUNC" in flags)

    def _perhaps_created(self, call: SystemCall) -> Iterator[Operation]:
        path = self._below_root(_strings(call)[0])
        if path is not None and "O_CREAT" in call.arguments:
            self._handles += 1
            yield OpenFile(self._handles, path, create=True, truncate="O_TRUNC" in call.arguments)

    def _named(self, call: SystemCall) -> Iterator[Operation]:
        paths = [self._below_root(text) for text in _strings(call)]
        match call.name, paths:
            case "mkdir", [str(path)]:
                yield MakeDirectory(path)
            case "unlink", [str(path)]:
                yield Unlink(path)
            case "rename", [str(source), str(target)]:
                yield Rename(source, target)
            case "rename", [None, None]:
                pass
            case "rename", _:
                raise NotUnderstood(call)

    def _on_descriptor(self, call: SystemCall, *, failed: bool) -> Iterator[Operation]:
        head, *rest = call.arguments.split(", ", 1)
        fd = int(head)
        if fd == TOLD_FD and call.name == "write":
            yield from (Tell(line) for line in _content(call).decode().splitlines())
            return
        descriptor = self._open.get(fd)
        if descriptor is None:
            return
        if failed and not _is_interrupted(call):
            raise NotUnderstood(call)
        handle = descriptor.handle
        if call.name in ("fsync", "fdatasync"):
            if not failed:
                yield Sync(handle)
            return
        yield from self._changed(call, descriptor, rest)

    def _changed(
        self, call: SystemCall, descriptor: _Descriptor, rest: list[str]
    ) -> Iterator[Operation]:
        count = None if _is_interrupted(call) else int(call.result.split()[0])
        handle = descriptor.handle
        match call.name:
            case "lseek":
                descriptor.position = count or 0
            case "ftruncate":
                yield Resize(handle, int(rest[0]))
            case "fallocate":
                mode, offset, length = (int(part, 0) for part in rest[0].split(", "))
                if mode:
                    raise NotUnderstood(call)
                yield Reserve(handle, offset + length)
            case "write":
                content = _content(call)[:count]
                yield Write(handle, descriptor.position, content)
                descriptor.position += len(content)
            case _:
                yield Write(handle, _offset(call), _content(call)[:count])

    def _refuse_if_ours(self, call: SystemCall) -> None:
        paths = [self._below_root(text) for text in _strings(call)]
        numbers = {int(number) for number in re.findall(r"(?:^|, )(\d+)(?=,|$)", call.arguments)}
        if any(path is not None for path in paths) or numbers & self._open.keys():
            raise NotUnderstood(call)

    def _below_root(self, path: bytes) -> str | None:
        text = path.decode()
        if text == self._root:
            return ""
        if not text.startswith(f"{self._root}/"):
            return None
        return text.removeprefix(f"{self._root}/")


def _with_doubts(calls: Iterable[SystemCall]) -> list[SystemCall]:
    """The calls; those that show another call's result have none."""
    given = list(calls)
    last = {call.thread: call for call in given}
    return [
        replace(call, result="?") if call is last[call.thread] and not _is_possible(call) else call
        for call in given
    ]


def _is_possible(call: SystemCall) -> bool:
    """Whether the call can have that result. Files in memory always take a write whole."""
    result = call.result.split()[0]
    if result.startswith(("-", "?")):
        return True
    match call.name:
        case name if name in RETURN_0:
            return result == "0"
        case name if name in RETURN_COUNT:
            return int(result) == len(_content(call))
        case _:
            return True


def _place_of(call: SystemCall) -> tuple[int, int]:
    """The line at which a call counts. A descriptor is free before another open may get it."""
    late = call.name in ("fsync", "fdatasync", "openat")
    return (call.ended, 1) if late else (call.began, 0)


def _is_interrupted(call: SystemCall) -> bool:
    return call.result.startswith("?")


def _end_of(call: SystemCall, first: int) -> int:
    return NEVER if _is_interrupted(call) else first + call.ended


def _strings(call: SystemCall) -> list[bytes]:
    found: list[bytes] = []
    for text, more in _STRING.findall(call.arguments):
        if more:
            raise NotUnderstood(f"strace cut a string of {call.name}")
        found.append(bytes.fromhex(text.replace("\\x", "")))
    return found


def _content(call: SystemCall) -> bytes:
    return b"".join(_strings(call))


def _offset(call: SystemCall) -> int:
    """The offset of a positioned write: only the flags of pwritev2 follow it."""
    last = 2 if call.name == "pwritev2" else 1
    return int(call.arguments.rsplit(", ", last)[1])

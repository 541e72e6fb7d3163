"""The staging area: drivers write files here, commits read them, and sweeps delete them.

::

    DATA/staging/JOB/EPOCH/CHUNK-ATTEMPT.staged      ids and epochs in hexadecimal digits

Invariant: no name comes from a user; a name that a driver gives is that of a staged file, and
nothing else. Files that no newest epoch of a running job can need are swept, at each start and as
soon as possible. Blocking.
"""

import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dss_core.errors import DssError, StagedFileRefused
from dss_core.frame import Verified
from dss_core.frames_together import examine_together
from dss_core.limits import STAGED_READ_BYTES
from dss_core.producer_ids import NO_PRODUCER
from dss_core.staged import (
    STAGED_SUFFIX,
    UNFINISHED_SUFFIX,
    UPLOAD_SUFFIX,
    BadStagedFile,
    StagedFile,
    StagedFor,
    chunk_of_name,
    staged_frames,
)

_LOG = logging.getLogger(__name__)

Check = Callable[[Sequence[Verified], int], None]
"""Checks frames, given how many came before."""


@dataclass(frozen=True, slots=True)
class Staging:
    """The area below one directory."""

    directory: Path

    def of_epoch(self, job_id: int, epoch: int) -> Path:
        """Where the driver of an epoch writes."""
        return self._of_job(job_id) / f"{epoch:08x}"

    def _of_job(self, job_id: int) -> Path:
        return self.directory / f"{job_id:016x}"

    def prepare(self, job_id: int, epoch: int) -> Path:
        """Make the directory of an epoch, and sweep those below it.

        Raises:
            OSError: the disk refused.
        """
        made = self.of_epoch(job_id, epoch)
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
        for other in self._of_job(job_id).iterdir():
            if other.name < made.name:
                _remove(other)
        return made

    def sweep_chunk(self, job_id: int, epoch: int, chunk: int) -> None:
        """Remove what was staged for a chunk."""
        folder = self.of_epoch(job_id, epoch)
        for path in list(folder.glob(f"{chunk:08x}-*")) if folder.is_dir() else ():
            if path.suffix in (STAGED_SUFFIX, UNFINISHED_SUFFIX, UPLOAD_SUFFIX):
                _remove(path)

    def sweep_job(self, job_id: int) -> None:
        """Remove all that was staged for a job."""
        _remove(self._of_job(job_id))

    def sweep(self, epochs: Mapping[int, int]) -> None:
        """Remove everything but the given epochs of the given jobs, by id."""
        if not self.directory.is_dir():
            return
        kept = {self.of_epoch(job_id, epoch) for job_id, epoch in epochs.items() if epoch}
        for job in self.directory.iterdir():
            if not any(path.parent == job for path in kept):
                _remove(job)
                continue
            for epoch in job.iterdir():
                if epoch not in kept:
                    _remove(epoch)
                    continue
                # A loss of power may have left holes in uploaded files.
                for part in list(epoch.glob(f"*{UPLOAD_SUFFIX}")):
                    _remove(part)


def checked_frames(
    folder: Path,
    job: str,
    files: Sequence[StagedFile],
    staged_for: StagedFor,
    check: Check,
    read_bytes: int = STAGED_READ_BYTES,
) -> Iterator[Sequence[memoryview]]:
    """The frames of staged files, each checked as one from a producer is; as `staged_frames`.

    Raises:
        StagedFileRefused: a file is missing, or something in it is not as it should be.
    """
    seen = 0
    for file in files:
        try:
            for frames, verified in _verified(folder, file, staged_for, read_bytes):
                check(verified, seen)
                seen += len(frames)
                yield frames
        except (BadStagedFile, DssError) as bad:
            raise StagedFileRefused(job=job, file=file.name[:80], reason=bad) from bad
        except OSError as error:
            reason = error.strerror or str(error)
            raise StagedFileRefused(job=job, file=file.name[:80], reason=reason) from error


def _verified(
    folder: Path, file: StagedFile, staged_for: StagedFor, read_bytes: int
) -> Iterator[tuple[Sequence[memoryview], Sequence[Verified]]]:
    """The frames of a file, each checked, and their number of records compared with the stated
    one."""
    if chunk_of_name(file.name) != staged_for.chunk:
        raise BadStagedFile(f"its name is not that of a file for chunk {staged_for.chunk}")
    records = 0
    for frames in staged_frames(folder / file.name, staged_for, file.bytes, read_bytes):
        verified = examine_together(frames)
        for header in (each.header for each in verified):
            if header.producer_id != NO_PRODUCER or header.sequence:
                raise BadStagedFile("a frame in it has a producer")
            records += header.records
        yield frames, verified
    if records != file.records:
        raise BadStagedFile(f"it has {records:,} records, not {file.records:,}")


def _remove(path: Path) -> None:
    """Remove a file or directory; a failure is logged, and the next start tries again."""
    try:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except FileNotFoundError:
        return
    except OSError as error:
        _LOG.warning("%s is swept later: %s", path, error, extra={"event": "staging.left"})

"""Uploads of staged files, from drivers without access to this host's files.

Invariant: a file gets its final name once all its bytes are there and each piece matched its
checksum. The commit that names it checks its content, as for any staged file. The bytes of a broken
call stay, and the next call continues after them. A newer call for a file replaces an older one.
The staged bytes of a job are bounded.
"""

import asyncio
from pathlib import Path
from typing import Protocol

from xxhash import xxh3_64_intdigest

from dss_core.errors import DiskFull, StagedFileRefused
from dss_core.limits import CHUNK_FILES_MAX
from dss_core.staged import UPLOAD_SUFFIX, chunk_of_name
from dssd.log.disk_errors import is_full

STAGED_BYTES_MAX = 16 << 30
"""Staged bytes of one driver: some dozens of chunks of the usual size; published chunks are
swept."""


class Stages(Protocol):
    """The jobs, as far as they are asked here."""

    def staging_of(self, name: str, epoch: int) -> Path:
        """The staging directory of the driver of an epoch; a sign of its life."""


class Uploads:
    """Those of one daemon."""

    def __init__(self, jobs: Stages, bytes_max: int = STAGED_BYTES_MAX) -> None:
        self._jobs = jobs
        self._bytes_max = bytes_max
        self._newest: dict[Path, Upload] = {}
        """Bounded by the calls that are open."""

    async def begin(self, job: str, epoch: int, name: str, size: int) -> "Upload":
        """Begin, or go on, to take a file in.

        Raises:
            JobNotFound, JobNotInState, JobFenced: the driver has to stop.
            StagedFileRefused: it is no name of a staged file, or too much is staged.
        """
        folder = self._jobs.staging_of(job, epoch)
        if chunk_of_name(name) is None:
            reason = "that is no name of a staged file"
            raise StagedFileRefused(job=job, file=name[:80], reason=reason)
        upload = Upload(self, job, epoch, folder / name, size)
        self._newest[upload.path] = upload
        coming = {each.path.name: each.size for each in self._newest.values() if each.is_of(folder)}
        try:
            await asyncio.to_thread(upload.look, coming, self._bytes_max)
        except BaseException:
            self.end(upload)
            raise
        return upload

    def staging_of(self, upload: "Upload") -> Path:
        """The directory of the file, if the epoch of its driver is the newest."""
        if self._newest.get(upload.path) is not upload:
            raise upload.refused("another call goes on with it")
        return self._jobs.staging_of(upload.job, upload.epoch)

    def end(self, upload: "Upload") -> None:
        """The call is over."""
        if self._newest.get(upload.path) is upload:
            del self._newest[upload.path]


class Upload:
    """One file that is taken in. Made by `Uploads.begin`."""

    def __init__(self, uploads: Uploads, job: str, epoch: int, path: Path, size: int) -> None:
        self.job = job
        self.epoch = epoch
        self.path = path
        self.size = size
        self.have = 0
        """How many of its bytes are there."""
        self._uploads = uploads
        self._part = path.with_name(path.name + UPLOAD_SUFFIX)

    @property
    def is_whole(self) -> bool:
        """Whether all of it is there."""
        return self.have == self.size

    def is_of(self, folder: Path) -> bool:
        """Whether this upload writes that file."""
        return self.path.parent == folder

    def look(self, coming: dict[str, int], bytes_max: int) -> None:
        """Find the bytes that exist already; blocking.

        Raises:
            StagedFileRefused: there would be too much.
        """
        found = {each.name: each.stat().st_size for each in self.path.parent.iterdir()}
        if found.get(self.path.name) == self.size:
            self.have = self.size
            return
        for name, size in coming.items():
            found.pop(name + UPLOAD_SUFFIX, None)
            found[name] = size
        if sum(found.values()) > bytes_max or len(found) > 2 * CHUNK_FILES_MAX:
            most = f"{bytes_max:,} bytes and {2 * CHUNK_FILES_MAX:,} files"
            raise self.refused(f"the job would have more staged than {most}")
        if self._part.exists():
            self.have = self._part.stat().st_size
        if self.have > self.size:
            self._part.unlink()
            self.have = 0

    async def take(self, offset: int, data: bytes, checksum: int) -> None:
        """Append a piece; the last one gives the file its final name.

        Raises:
            StagedFileRefused: it is not the next one, or not what was said of it.
            JobNotFound, JobNotInState, JobFenced: the driver has to stop.
            DiskFull: there is no room.
        """
        self._uploads.staging_of(self)
        if offset != self.have or not data or offset + len(data) > self.size:
            raise self.refused(f"{len(data):,} bytes at {offset:,} do not go on at {self.have:,}")
        if xxh3_64_intdigest(data) != checksum:
            raise self.refused(f"the bytes at {offset:,} are not those that were sent")
        try:
            await asyncio.to_thread(self._put, data)
        except OSError as error:
            if is_full(error):
                raise DiskFull from error
            raise self.refused(error.strerror or str(error)) from error
        self.have += len(data)

    def _put(self, data: bytes) -> None:
        with self._part.open("r+b" if self.have else "wb") as file:
            file.seek(self.have)
            file.write(data)
        if self.have + len(data) == self.size:
            self._part.replace(self.path)

    def refused(self, reason: str) -> StagedFileRefused:
        """Why it is not taken."""
        return StagedFileRefused(job=self.job, file=self.path.name, reason=reason)

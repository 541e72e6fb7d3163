"""Certificates made for a test, by an authority of its own.

The command `openssl` makes them, so that the product and its tests do not only read what they wrote
themselves. Invariant: keys are in the given folder, and only their owner may read them.
"""

import os
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from support.prerequisites import need_program

_CONFIGURATION = """
[ca]
default_ca = own
[own]
database = {folder}/index
new_certs_dir = {folder}
serial = {folder}/serial
default_md = sha256
policy = any
unique_subject = no
copy_extensions = copy
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key."""

    cert: Path
    key: Path


class Authority:
    """Signs certificates; whoever trusts it has `cert`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder / name
        self._folder.mkdir()
        self._made = 0
        self._configuration = self._folder / "openssl.cnf"
        self._configuration.write_text(_CONFIGURATION.format(folder=self._folder))
        (self._folder / "index").touch()
        self.cert = self._folder / "ca.pem"
        self._key = self._folder / "ca.key"
        self._openssl(
            "req", "-x509", "-days", "2", "-subj", f"/CN={name}", "-out", str(self.cert),
            *self._new_key(self._key),
        )  # fmt: skip

    def signed(
        self,
        name: str,
        *names: str,
        begins: timedelta = timedelta(minutes=-5),
        ends: timedelta = timedelta(hours=1),
    ) -> Pair:
        """A certificate with this CN and these alternative names: ``DNS:localhost``, ``URI:…``."""
        self._made += 1
        stem = self._folder / f"{self._made}"
        pair = Pair(stem.with_suffix(".pem"), stem.with_suffix(".key"))
        request = str(stem.with_suffix(".csr"))
        alternative = ["-addext", f"subjectAltName={','.join(names)}"] if names else []
        self._openssl(
            "req", "-new", "-subj", f"/CN={name}", "-out", request, *alternative,
            *self._new_key(pair.key),
        )  # fmt: skip
        now = datetime.now(UTC)
        self._openssl(
            "ca", "-batch", "-notext", "-create_serial", "-in", request, "-out", str(pair.cert),
            "-cert", str(self.cert), "-keyfile", str(self._key),
            "-startdate", _said(now + begins), "-enddate", _said(now + ends),
        )  # fmt: skip
        return pair

    def _new_key(self, key: Path) -> tuple[str, ...]:
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
        return (*curve, "-nodes", "-keyout", str(key))

    def _openssl(self, command: str, *arguments: str) -> None:
        need_program("openssl")
        words = ["openssl", command, "-config", str(self._configuration), *arguments]
        done = subprocess.run(words, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()


def replaced(path: Path, source: Path) -> None:
    """Put another file at a path, all at once, as renewal tools do."""
    staged = path.with_name(f"{path.name}.new")
    staged.write_bytes(source.read_bytes())
    os.replace(staged, path)  # noqa: PTH105 - the call that is meant


def _said(moment: datetime) -> str:
    return moment.strftime("%Y%m%d%H%M%SZ")

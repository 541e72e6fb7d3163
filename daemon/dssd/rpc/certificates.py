"""The daemon's certificate, and the authorities of its clients, as they lie in files.

Changed files are read again, and tried with `ssl` first: gRPC silently keeps the old certificate if
it cannot load the new one. Invariant: the last usable certificate is served until another usable
one is there.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypedDict

import grpc

from dss_core.errors import IllegalConfig
from dssd.config import TlsFiles
from dssd.events.kinds import CERTIFICATE_CHANGED, CERTIFICATE_REFUSED
from dssd.events.model import Event, Note, unheard
from dssd.rpc.certificate_times import NoCertificateError, not_after_ms

CERTIFICATES_LOOK_S = 1.0
"""How often the files are checked for changes: three system calls."""

CERTIFICATE_FILE_BYTES_MAX = 1 << 20
"""The authorities of a whole system take 300 KiB."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Read:
    """What the files held together."""

    key: bytes
    cert: bytes
    client_ca: bytes | None
    not_after_ms: int

    def configuration(self, *, with_clients: bool) -> grpc.ServerCertificateConfiguration:
        """For gRPC."""
        roots = self.client_ca if with_clients else None
        return grpc.ssl_server_certificate_configuration([(self.key, self.cert)], roots)


class Certificates:
    """Those of one daemon.

    Raises:
        IllegalConfig: they cannot be served.
    """

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._note: Note = unheard
        self._seen = self._stamps()
        try:
            self._read = _read(files)
        except (OSError, ValueError) as error:
            raise IllegalConfig(source=files.cert, reason=_reason(error)) from error
        self.problem = ""
        """Why the present files are not served; empty: they are."""

    def tell(self, note: Note) -> None:
        """Tell of what happens from now on."""
        self._note = note

    @property
    def cert(self) -> Path:
        """The file of the certificate."""
        return self._files.cert

    @property
    def not_after_ms(self) -> int:
        """Until when what is served is valid, by the wall clock."""
        return self._read.not_after_ms

    def credentials(self, *, with_clients: bool) -> grpc.ServerCredentials:
        """For one server: each new connection uses the certificate of that moment."""
        return grpc.dynamic_ssl_server_credentials(
            self._read.configuration(with_clients=with_clients),
            self._fetcher(with_clients=with_clients),  # type: ignore[arg-type] # None is allowed
            require_client_authentication=with_clients,
        )

    async def run(self) -> NoReturn:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(CERTIFICATES_LOOK_S)
            self.look()

    def look(self) -> None:
        """Read the files again if they changed."""
        stamps = self._stamps()
        if stamps == self._seen:
            return
        self._seen = stamps
        try:
            read = _read(self._files)
        except (OSError, ValueError) as error:
            self.problem = _reason(error)
            self._tell_refused()
            return
        self.problem = ""
        if read != self._read:
            self._read = read
            self._tell_changed()

    def _fetcher(
        self, *, with_clients: bool
    ) -> Callable[[], grpc.ServerCertificateConfiguration | None]:
        """Called on threads of gRPC's, at each connection. None: it is as it was."""
        given = self._read

        def fetch() -> grpc.ServerCertificateConfiguration | None:
            nonlocal given
            read = self._read
            if read is given:
                return None
            given = read
            return read.configuration(with_clients=with_clients)

        return fetch

    def _stamps(self) -> tuple[object, ...]:
        return tuple(map(_stamp, (self._files.cert, self._files.key, self._files.client_ca)))

    def _tell_refused(self) -> None:
        _LOG.error(
            "the certificate in %s is not served, the one before stays: %s",
            self.cert,
            self.problem,
            extra={"event": "certificate.refused"},
        )
        sentence = f"What lies there is not served, the one before it stays: {self.problem}."
        self._note(Event(CERTIFICATE_REFUSED, str(self.cert), sentence, {"reason": self.problem}))

    def _tell_changed(self) -> None:
        _LOG.info(
            "the certificate in %s is served from now on",
            self.cert,
            extra={"event": "certificate.changed"},
        )
        fields = {"not_after_ms": str(self.not_after_ms)}
        sentence = "It is served from now on, to connections that begin."
        self._note(Event(CERTIFICATE_CHANGED, str(self.cert), sentence, fields))


def ends_ms_of(served: Certificates | None) -> int:
    """When what is served ends, by the wall clock; 0 where there is no TLS."""
    return 0 if served is None else served.not_after_ms


class CertificateFacts(TypedDict):
    """What operators are told of it."""

    certificate: str
    certificate_ends_ms: int
    certificate_problem: str


def certificate_facts(served: Certificates | None) -> CertificateFacts:
    """What there is to tell; nothing where there is no TLS."""
    return CertificateFacts(
        certificate="" if served is None else str(served.cert),
        certificate_ends_ms=ends_ms_of(served),
        certificate_problem="" if served is None else served.problem,
    )


def _stamp(path: Path | None) -> tuple[int, int, int] | None:
    if path is None:
        return None
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def _read(files: TlsFiles) -> _Read:
    """Read all, and try it.

    Raises:
        OSError: a file cannot be read, or what it holds cannot be served (`ssl.SSLError`).
        ValueError: the same.
    """
    key, cert = _bytes_of(files.key), _bytes_of(files.cert)
    client_ca = None if files.client_ca is None else _bytes_of(files.client_ca)
    tried = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # For a key with a password `ssl` would prompt at the terminal.
    tried.load_cert_chain(files.cert, files.key, password="")
    if client_ca is not None:
        tried.load_verify_locations(cadata=client_ca.decode("ascii"))
    if (_bytes_of(files.key), _bytes_of(files.cert)) != (key, cert):
        raise ValueError("the files change while they are read")
    return _Read(key, cert, client_ca, not_after_ms(cert))


def _bytes_of(path: Path) -> bytes:
    with path.open("rb") as file:
        found = file.read(CERTIFICATE_FILE_BYTES_MAX + 1)
    if len(found) > CERTIFICATE_FILE_BYTES_MAX:
        raise ValueError(f"{path} has more than {CERTIFICATE_FILE_BYTES_MAX >> 20} MiB")
    return found


def _reason(error: Exception) -> str:
    match error:
        case ssl.SSLError(reason=str(reason)):
            words = reason.replace("_", " ").lower()
            return f"certificate, key and authorities do not fit ({words})"
        case NoCertificateError():
            return str(error)
        case OSError(filename=name, strerror=str(said)) if name:
            return f"{name}: {said}"
        case _:
            return str(error).rstrip(".")

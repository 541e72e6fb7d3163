"""The daemon's certificate: what is served, what is not, and what stays meanwhile."""

import os
from pathlib import Path

import pytest

from dss_core.errors import ExitCode, IllegalConfig
from dssd.config import TlsFiles
from dssd.events.model import Event
from dssd.rpc.certificates import Certificates
from support.certificates import Authority, replaced


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def files(authority: Authority, tmp_path: Path) -> TlsFiles:
    pair = authority.signed("localhost", "DNS:localhost")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    replaced(cert, pair.cert)
    replaced(key, pair.key)
    return TlsFiles(cert, key)


def test_a_new_pair_is_served_once_both_files_are_there(
    authority: Authority, files: TlsFiles
) -> None:
    told: list[Event] = []
    served = Certificates(files)
    served.tell(told.append)
    end_ms = served.not_after_ms
    served.look()
    assert told == []
    pair = authority.signed("localhost", "DNS:localhost")
    replaced(files.cert, pair.cert)
    served.look()
    served.look()
    assert [each.kind.code for each in told] == ["certificate.refused"]
    assert "do not fit" in served.problem
    assert served.not_after_ms == end_ms
    replaced(files.key, pair.key)
    served.look()
    assert [each.kind.code for each in told] == ["certificate.refused", "certificate.changed"]
    assert served.problem == ""
    assert served.not_after_ms >= end_ms


@pytest.mark.parametrize("garbage", [b"", b"-----BEGIN CERTIFICATE-----\n", os.urandom(99)])
def test_garbage_is_not_served_and_what_was_stays(files: TlsFiles, garbage: bytes) -> None:
    served = Certificates(files)
    end_ms = served.not_after_ms
    files.cert.write_bytes(garbage)
    served.look()
    assert served.problem
    assert served.not_after_ms == end_ms
    files.cert.unlink()
    served.look()
    assert "No such file" in served.problem


def test_a_daemon_does_not_begin_with_what_it_cannot_serve(
    authority: Authority, files: TlsFiles, tmp_path: Path
) -> None:
    wrong = (
        TlsFiles(files.cert, authority.signed("other").key),
        TlsFiles(files.cert, tmp_path / "nowhere.pem"),
        TlsFiles(files.key, files.key),
        TlsFiles(files.cert, files.key, client_ca=files.key),
    )
    for each in wrong:
        with pytest.raises(IllegalConfig) as refused:
            Certificates(each)
        assert refused.value.exit_code == ExitCode.CONFIG


def test_a_key_with_a_password_is_not_asked_for_it(files: TlsFiles, tmp_path: Path) -> None:
    locked = tmp_path / "locked.pem"
    command = f"openssl pkcs8 -topk8 -in {files.key} -out {locked} -passout pass:open-sesame"
    assert os.system(command) == 0
    with pytest.raises(IllegalConfig):
        Certificates(TlsFiles(files.cert, locked))

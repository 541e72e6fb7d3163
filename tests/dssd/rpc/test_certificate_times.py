"""When a certificate ends, as `openssl` wrote it, and of bytes that are none."""

import base64
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dssd.rpc.certificate_times import NoCertificateError, not_after_ms
from support.certificates import Authority
from support.proof_share import share


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.mark.parametrize("days", [-1, 1, 9_000])
def test_the_end_is_that_of_the_first_certificate(authority: Authority, days: int) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    pair = authority.signed("a", begins=timedelta(days=-2), ends=timedelta(days=days))
    after = datetime.now(UTC)
    pem = pair.cert.read_bytes() + authority.cert.read_bytes()
    end = datetime.fromtimestamp(not_after_ms(pem) / 1_000, UTC) - timedelta(days=days)
    assert before <= end <= after


@pytest.mark.parametrize("pem", [b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n", b"\x00" * 99])
def test_what_is_no_certificate_is_none(pem: bytes) -> None:
    with pytest.raises(NoCertificateError):
        not_after_ms(pem)


def test_a_key_is_no_certificate(authority: Authority) -> None:
    with pytest.raises(NoCertificateError):
        not_after_ms(authority.signed("k").key.read_bytes())


@pytest.fixture(scope="module")
def der(authority: Authority) -> bytes:
    pem: Path = authority.signed("a").cert
    return base64.b64decode(b"".join(pem.read_bytes().splitlines()[1:-1]))


@settings(max_examples=share(100, 60_000))
@given(data=st.data())
def test_broken_bytes_end_in_a_time_or_a_refusal(der: bytes, data: st.DataObject) -> None:
    broken = bytearray(der[: data.draw(st.integers(1, len(der)))])
    for _ in range(data.draw(st.integers(0, 3))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    framed = b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(bytes(broken))
    with suppress(NoCertificateError):  # any other error fails this
        assert isinstance(not_after_ms(framed + b"-----END CERTIFICATE-----\n"), int)

"""Until when a certificate is valid, read from its DER.

Python's `ssl` says it only of certificates that it verified itself. Invariant: it ends for any
bytes, and reads none behind them.
"""

import base64
import binascii
import re
from datetime import UTC, datetime

_FIRST = re.compile(rb"-----BEGIN CERTIFICATE-----\s+([A-Za-z0-9+/=\s]+?)-----END CERTIFICATE-----")

_SEQUENCE, _VERSION, _UTC_TIME, _GENERALIZED_TIME = 0x30, 0xA0, 0x17, 0x18
_LONG_LENGTH = 0x80
_LENGTH_BYTES_MAX = 4
"""Of a length: a certificate of 4 GiB is none."""


class NoCertificateError(ValueError):
    """The bytes are no certificate that can be read."""


def not_after_ms(pem: bytes) -> int:
    """When the first certificate ends, in milliseconds since 1970.

    Raises:
        NoCertificateError: there is none, or it cannot be read.
    """
    found = _FIRST.search(pem)
    if found is None:
        raise NoCertificateError("it has no certificate")
    try:
        return _not_after(base64.b64decode(found[1]))
    except (binascii.Error, IndexError, ValueError) as broken:
        raise NoCertificateError(f"its certificate cannot be read: {broken}") from broken


def _not_after(der: bytes) -> int:
    certificate, _ = _value(der, 0, _SEQUENCE)
    signed, _ = _value(certificate, 0, _SEQUENCE)
    at = _after(signed, 0) if signed[0] == _VERSION else 0
    for _ in ("serial number", "algorithm", "issuer"):
        at = _after(signed, at)
    validity, _ = _value(signed, at, _SEQUENCE)
    return _time_ms(validity, _after(validity, 0))


def _time_ms(der: bytes, at: int) -> int:
    kind = der[at]
    if kind not in (_UTC_TIME, _GENERALIZED_TIME):
        raise ValueError("its end is no time")
    text = _value(der, at, kind)[0].decode("ascii")
    if kind == _UTC_TIME:  # two digits of the year: 1950 to 2049
        text = ("19" if text[:2] >= "50" else "20") + text
    moment = datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    return int(moment.timestamp() * 1_000)


def _after(der: bytes, at: int) -> int:
    """Where what stands behind a value begins."""
    return _value(der, at, der[at])[1]


def _value(der: bytes, at: int, tag: int) -> tuple[bytes, int]:
    """The contents of the value at a position, and where it ends."""
    if der[at] != tag:
        raise ValueError(f"tag {der[at]:#x} stands where {tag:#x} should")
    length, begin = der[at + 1], at + 2
    if length >= _LONG_LENGTH:
        count = length - _LONG_LENGTH
        if not 1 <= count <= _LENGTH_BYTES_MAX:
            raise ValueError("a length has no bounds")
        length = int.from_bytes(der[begin : begin + count])
        begin += count
    end = begin + length
    if end > len(der):
        raise ValueError("it is cut")
    return der[begin:end], end

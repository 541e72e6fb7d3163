"""Partial results as text, for the manifest of a job.

::

    base 85 ( zlib ( length of the values, 4 bytes │ values, JSON │ pages of origins, 8 KiB each ) )

Invariant: a text has at most `AUDIT_OUTPUT_BYTES_MAX` bytes. Parts that are left out for that are
named when it is read again, as unexamined, never as sound.
"""

import json
import zlib
from base64 import b85decode, b85encode
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dss_bulk.audits.origins import PAGE_BYTES, Origins
from dss_bulk.audits.partial import Amount, Check, Found, Partial
from dss_bulk.audits.top_keys import TopKeys
from dss_bulk.limits import AUDIT_OUTPUT_BYTES_MAX

_LENGTH_BYTES = 4
ALL_STREAMS = "all"
"""Stands for all streams where too many are named to tell them apart."""


def text_of(partial: Partial, bytes_max: int = AUDIT_OUTPUT_BYTES_MAX) -> str:
    """A partial result as text, for `read`, without the parts that do not fit."""
    text = _encoded(partial)
    for shorten in _SHORTER:
        if len(text) <= bytes_max:
            break
        partial = shorten(partial)
        text = _encoded(partial)
    assert len(text) <= bytes_max, "what is left has a few numbers"
    return text


def read(text: str) -> Partial:
    """Read what `text_of` wrote."""
    content = zlib.decompress(b85decode(text))
    length = int.from_bytes(content[:_LENGTH_BYTES], "big")
    fields = json.loads(content[_LENGTH_BYTES : _LENGTH_BYTES + length])
    pages = content[_LENGTH_BYTES + length :]
    return Partial(
        streams={name: Amount(*each) for name, *each in fields["streams"]},
        keyless=fields["keyless"],
        found={Check(name): Found(count, tuple(some)) for name, count, some in fields["found"]},
        keys=_keys(fields["keys"], fields["short"]),
        origins=_origins(fields, pages),
        orders={(stream, source): (low, high) for stream, source, low, high in fields["orders"]},
        apart=frozenset((stream, source) for stream, source in fields["apart"]),
    )


def _encoded(partial: Partial) -> str:
    values = json.dumps(_values(partial), separators=(",", ":")).encode()
    pages = (bits.to_bytes(PAGE_BYTES, "little") for bits in partial.origins.pages.values())
    content = b"".join((len(values).to_bytes(_LENGTH_BYTES, "big"), values, *pages))
    return b85encode(zlib.compress(content)).decode()


def _values(partial: Partial) -> dict[str, object]:
    origins, keys = partial.origins, partial.keys
    return {
        "streams": [(name, each.records, each.bytes) for name, each in partial.streams.items()],
        "keyless": partial.keyless,
        "found": [(check, each.count, each.examples) for check, each in partial.found.items()],
        "keys": [(key, n, keys.names.get(key, b"").hex()) for key, n in keys.counts.items()],
        "short": keys.short,
        "orders": [(*copied, *low_high) for copied, low_high in partial.orders.items()],
        "apart": sorted(partial.apart),
        "pages": list(origins.pages),
        "doubles": origins.doubles,
        "doubled": origins.doubled,
        "unexamined": origins.unexamined,
    }


def _keys(rows: Sequence[tuple[int, int, str]], short: int) -> TopKeys:
    counts = {key: count for key, count, _ in rows}
    return TopKeys(counts, {key: bytes.fromhex(name) for key, _, name in rows}, short)


def _origins(fields: dict[str, Any], pages: bytes) -> Origins:
    each = (pages[at : at + PAGE_BYTES] for at in range(0, len(pages), PAGE_BYTES))
    bits = (int.from_bytes(page, "little") for page in each)
    names = ((stream, number) for stream, number in fields["pages"])
    doubled = tuple((stream, offset) for stream, offset in fields["doubled"])
    seen = dict(zip(names, bits, strict=True))
    return Origins(seen, fields["doubles"], doubled, fields["unexamined"])


def settled(partial: Partial) -> Partial:
    """A partial result as the last one: no later part will be compared with it."""
    return replace(partial, origins=replace(partial.origins, pages={}), orders={})


# The parts to leave out, in this order, until the rest fits.


def _without_pages(partial: Partial) -> Partial:
    """The result without pages: later parts are not compared with its origins."""
    origins = partial.origins
    unexamined = origins.unexamined + origins.records
    return replace(partial, origins=replace(origins, pages={}, unexamined=unexamined))


def _without_orders(partial: Partial) -> Partial:
    before = partial.found.get(Check.UNEXAMINED, Found())
    lost = Found(len(partial.orders) + len(partial.apart))
    found = {**partial.found, Check.UNEXAMINED: before.plus(lost)}
    return replace(partial, found=found, orders={}, apart=frozenset())


def _without_examples(partial: Partial) -> Partial:
    found = {check: Found(each.count) for check, each in partial.found.items()}
    origins = replace(partial.origins, doubled=())
    return replace(partial, found=found, origins=origins)


def _without_streams(partial: Partial) -> Partial:
    whole = Amount(partial.records, partial.bytes)
    return replace(partial, streams={ALL_STREAMS: whole}, keys=TopKeys(short=partial.records))


_SHORTER: Sequence[Callable[[Partial], Partial]] = (
    _without_pages,
    _without_orders,
    _without_examples,
    _without_streams,
)

"""How several endpoints of one daemon are written: behind each other, with commas.

Invariant: the path of a socket may have a comma; only what begins like an endpoint is the next one.
"""

import re

_NEXT = re.compile(r",\s*(?=unix:|dss://|[^/,\s]+:[0-9]+\s*(?:,|$))")


def endpoint_texts(text: str) -> list[str]:
    """Each of the endpoints that a text names."""
    return [each.strip() for each in _NEXT.split(text)]

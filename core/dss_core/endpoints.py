"""Endpoints of a daemon as clients write them, and environment variables with defaults.

Invariant: the path of a socket may have a comma; only what begins like an endpoint is the next one.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

CREDENTIAL_VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        "ca": "DSSCTL_TLS_CA",
        "cert": "DSSCTL_TLS_CERT",
        "key": "DSSCTL_TLS_KEY",
        "token_file": "DSSCTL_TOKEN_FILE",
    }
)
"""Defaults for missing arguments; child processes inherit them."""

_NEXT = re.compile(r",\s*(?=unix:|dss://|[^/,\s]+:[0-9]+\s*(?:,|$))")


def endpoint_texts(text: str) -> list[str]:
    """Each of the endpoints that a text names."""
    return [each.strip() for each in _NEXT.split(text)]

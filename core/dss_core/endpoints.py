"""How a daemon is named by who reaches it: its endpoints, and the variables that name files.

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
"""What counts where an argument is not given; so programs that a program starts have it too."""

_NEXT = re.compile(r",\s*(?=unix:|dss://|[^/,\s]+:[0-9]+\s*(?:,|$))")


def endpoint_texts(text: str) -> list[str]:
    """Each of the endpoints that a text names."""
    return [each.strip() for each in _NEXT.split(text)]

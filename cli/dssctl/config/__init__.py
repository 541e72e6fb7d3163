"""Configuration: where values come from, and which of them counts.

A flag counts more than an environment variable, that more than the context, that more than the
configuration file, that more than the default. Invariant: no command looks at the environment or
the file itself.
"""

from dssctl.config.document import Configuration, Context
from dssctl.config.keys import KEYS, Key, put
from dssctl.config.resolving import Resolved, configure, resolved

__all__ = ["KEYS", "Configuration", "Context", "Key", "Resolved", "configure", "put", "resolved"]

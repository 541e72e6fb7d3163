"""Configuration: where values come from, and which of them wins.

A flag wins over an environment variable, that over the context, that over the configuration file,
and that over the default. Invariant: no command looks at the environment or the file itself.
"""

from dssctl.config.document import Configuration, Context
from dssctl.config.keys import KEYS, Key, put
from dssctl.config.resolving import Resolved, configure, resolved

__all__ = ["KEYS", "Configuration", "Context", "Key", "Resolved", "configure", "put", "resolved"]

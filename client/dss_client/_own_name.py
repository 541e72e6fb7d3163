"""The name of a client that was given none: who runs which program where.

So an operator who sees it at a stream knows whom to ask. Invariant: it is a legal name, and no two
living clients have the same, as its end is random.
"""

import os
import pwd
import re
import sys
from pathlib import Path

OWN_NAME_PART_CHARS_MAX = 32
"""How long user, host and program may be in a made-up name: half of the longest name."""

OWN_NAME_RANDOM_BYTES = 3
"""How many random bytes: few processes share host name and process id, and 16 million values are
enough."""


_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._]+")


def own_name() -> str:
    """``USER-HOST-PID-PROGRAM-RANDOM``."""
    host = os.uname().nodename.partition(".")[0]
    parts = (_user(), host, str(os.getpid()), _program())
    named = [_NOT_IN_NAMES.sub("_", part)[:OWN_NAME_PART_CHARS_MAX] for part in parts]
    return "-".join((*named, os.urandom(OWN_NAME_RANDOM_BYTES).hex()))


def _user() -> str:
    """The account's name, or its number where it has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _program() -> str:
    """The script or the module that runs; ``python`` where it is neither."""
    script = Path(sys.argv[0] if sys.argv else "")
    if script.name == "__main__.py":
        return script.parent.name
    return script.stem if script.stem not in {"", "-c"} else "python"

"""Notes to a person on stderr, while data goes to stdout.

Invariant: where a program reads along, each line on stderr is a JSON document.
"""

import json
import sys

from dssctl.output.escape import escaped, escaped_in_json
from dssctl.output.model import API_VERSION
from dssctl.settings import Settings


def note(settings: Settings, sentence: str) -> None:
    """Say on stderr what is worth knowing and is no error."""
    if settings.machine_readable:
        document = {"apiVersion": API_VERSION, "kind": "Note", "message": sentence}
        line = escaped_in_json(json.dumps(document, ensure_ascii=False))
    else:
        line = f"note: {escaped(sentence)}"
    sys.stderr.write(line + "\n")
    sys.stderr.flush()

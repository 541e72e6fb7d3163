"""Notes to a person on stderr, while data goes to stdout.

Invariant: where a program reads along, each line on stderr is a JSON document.
"""

import json
import sys
from collections.abc import Mapping

from dss_core.errors import DssError
from dssctl.output.escape import escaped, escaped_in_json
from dssctl.output.model import API_VERSION
from dssctl.settings import Settings


def note(settings: Settings, sentence: str) -> None:
    """Say on stderr what is worth knowing and is no error; nothing where quiet is wanted."""
    if not settings.quiet:
        _write(settings, sentence, {"message": sentence})


def note_condition(settings: Settings, condition: DssError) -> None:
    """Report a condition on stderr at once; the command goes on."""
    fields = {"code": condition.code, "message": condition.message, "fields": condition.fields}
    _write(settings, f"{condition.code}: {condition.message}", fields)


def _write(settings: Settings, sentence: str, fields: Mapping[str, object]) -> None:
    if settings.machine_readable:
        document = {"apiVersion": API_VERSION, "kind": "Note", **fields}
        line = escaped_in_json(json.dumps(document, ensure_ascii=False))
    else:
        line = f"note: {escaped(sentence)}"
    # On a terminal, the data that the note is about must come first.
    sys.stdout.flush()
    sys.stderr.write(line + "\n")
    sys.stderr.flush()

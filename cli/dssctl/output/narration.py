"""What is told to a person while data goes elsewhere."""

import sys

from dssctl.output.escape import escaped


def narrate(sentence: str) -> None:
    """Say it on stderr, on one line of its own."""
    sys.stderr.write(escaped(sentence) + "\n")
    sys.stderr.flush()

"""Codes and hints of errors, where Spark shows them.

Spark passes a Python error on as its traceback, which is text. Invariant: the error itself does not
change; its code and hint are added at its end.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from dss_core.errors import DssError


@contextmanager
def noted() -> Iterator[None]:
    """Add the code and hint of a DSS error to what is printed of it."""
    try:
        yield
    except DssError as error:
        error.add_note(" ".join(filter(None, (f"{error.code}.", error.hint_text))))
        raise

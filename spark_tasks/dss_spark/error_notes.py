"""Codes and hints of errors, where Spark shows them.

Spark passes an error of Python on as its traceback, a text. Invariant: the error stays what it is;
its code and what helps stand behind it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from dss_core.errors import DssError


@contextmanager
def noted() -> Iterator[None]:
    """Put the code of an error of DSS into what is printed of it."""
    try:
        yield
    except DssError as error:
        error.add_note(" ".join(filter(None, (f"{error.code}.", error.hint_text))))
        raise

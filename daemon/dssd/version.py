"""The version of what is installed, read when it is asked for: reading it takes milliseconds."""

from functools import cache
from importlib.metadata import version as installed_version


@cache
def version() -> str:
    """The version of the distribution that this daemon belongs to."""
    return installed_version("dss")

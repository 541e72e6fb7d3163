"""Who gets how many descriptors, and what a shortage of them is."""

import errno
import resource

import pytest

from dss_core.errors import DiskFull, Overloaded
from dssd.descriptors import connections_max, raise_limit, shortage_in
from dssd.limits import CONNECTIONS_MAX


@pytest.mark.parametrize(
    ("allowed", "connections"),
    [
        (256, 128),
        (1, 1),
        (10 * CONNECTIONS_MAX, CONNECTIONS_MAX),
        (resource.RLIM_INFINITY, CONNECTIONS_MAX),
    ],
)
def test_clients_get_at_most_half(
    monkeypatch: pytest.MonkeyPatch, allowed: int, connections: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (allowed, allowed))
    assert connections_max() == connections


def test_the_soft_limit_becomes_the_hard_one() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        raise_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_a_shortage_is_an_overload(number: int) -> None:
    assert isinstance(shortage_in(OSError(number, "too many open files")), Overloaded)


@pytest.mark.parametrize("error", [OSError(errno.EIO, "no"), DiskFull(), ValueError()])
def test_nothing_else_is(error: Exception) -> None:
    assert shortage_in(error) is None

from pathlib import Path

import pytest

from dss_core.default_paths import expanded
from dss_core.errors import IllegalConfig


def test_a_tilde_stands_for_a_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert expanded(Path("~/s")) == Path("/home/ada/s")
    assert expanded(Path("/a/~b")) == Path("/a/~b")


@pytest.mark.parametrize("path", ["~no-such-user/s", "~su\0/s"])
def test_the_home_directory_of_nobody_is_refused(path: str) -> None:
    with pytest.raises(IllegalConfig, match="no such home directory"):
        expanded(Path(path))

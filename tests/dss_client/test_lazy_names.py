"""Names of the client's API are looked up when they are used."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dss_client

SEEN_BY_TYPES = {
    alias.name: node.module
    for node in ast.walk(ast.parse(Path(dss_client.__file__).read_text()))
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
"""What a type checker finds, by name."""


@pytest.mark.parametrize("name", dss_client.__all__)
def test_a_name_is_what_type_checkers_take_it_for(name: str) -> None:
    value = getattr(dss_client, name)
    module = SEEN_BY_TYPES[name]
    assert module is not None
    if module == "dss_client":
        assert value is import_module(f"dss_client.{name}")
    else:
        assert value is getattr(import_module(module), name)
    assert name in dir(dss_client)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Gruop'"):
        _ = dss_client.Gruop  # type: ignore[attr-defined]


def test_connecting_loads_no_part_of_the_administration() -> None:
    program = "import sys; from dss_client import connect; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = set(done.stdout.decode().split())
    assert "dss_client._client" in loaded
    assert not loaded & {f"dss_client.{each}" for each in ("groups", "operations", "changes")}


def test_a_part_is_not_there_before_the_client_is_open() -> None:
    client = dss_client.connect(endpoint="unix:/nowhere/s")
    with pytest.raises(AttributeError, match="is it open"):
        _ = client.groups

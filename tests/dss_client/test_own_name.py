import os
import sys

import pytest

from dss_client import connect
from dss_client._own_name import own_name
from dss_core.filters import check_name


@pytest.mark.parametrize(
    "script", ["/usr/bin/billing.py", "x y/é+", "-c", "", "/a/tool/__main__.py"]
)
def test_a_made_up_name_is_legal_and_says_who_it_is(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [script])
    name = own_name()
    check_name(name)
    assert f"-{os.getpid()}-" in name
    assert own_name() != name


def test_a_program_is_named_by_its_script_or_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/billing.py"])
    assert own_name().split("-")[-2] == "billing"
    monkeypatch.setattr(sys, "argv", ["/a/tool/__main__.py"])
    assert own_name().split("-")[-2] == "tool"


def test_a_name_that_is_given_is_kept() -> None:
    assert connect("anna").client_id == "anna"
    unnamed = connect()
    assert unnamed.client_id == unnamed.client_id

import pytest

from dss_client.access import Permission
from dss_core.errors import IllegalArgument
from dssctl.permission_options import permissions_of


def test_a_permission_is_written_in_one_text() -> None:
    (made,) = permissions_of((), (), (), ("consume orders/# 'a b/#' @bill*",))
    assert made == Permission("consume", ("orders/#", "a b/#"), ("bill*",))


@pytest.mark.parametrize("text", ["read 'orders/#", 'read "', "read \\"])
def test_a_quote_that_is_not_closed_is_refused(text: str) -> None:
    with pytest.raises(IllegalArgument, match="permission"):
        permissions_of((), (), (), (text,))

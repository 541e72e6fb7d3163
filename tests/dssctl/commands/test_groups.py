import pytest

from dss_core.errors import GroupMisspelt
from dssctl.commands.groups import subscription_filter


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("billing@orders/#", "$share/billing/orders/#"),
        ("$share/billing/orders/#", "$share/billing/orders/#"),
        ("$queue/work/jobs/+", "$queue/work/jobs/+"),
        ("a@b@c", "$share/a/b@c"),
    ],
)
def test_a_group_is_written_as_it_is_printed_or_as_on_the_wire(written: str, meant: str) -> None:
    assert subscription_filter(written) == meant


@pytest.mark.parametrize("written", ["billing", "/billing/orders/#", "/billing/a@b"])
def test_what_a_shell_left_of_an_unquoted_group_is_refused_with_a_word_on_quotes(
    written: str,
) -> None:
    with pytest.raises(GroupMisspelt) as refused:
        subscription_filter(written)
    assert "single quotes" in refused.value.hint_text

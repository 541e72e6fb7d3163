import pytest

from dssctl.commands.groups import subscription_filter


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("billing@orders/#", "$share/billing/orders/#"),
        ("$share/billing/orders/#", "$share/billing/orders/#"),
        ("$queue/work/jobs/+", "$queue/work/jobs/+"),
        ("a@b@c", "$share/a/b@c"),
        ("billing", "billing"),
    ],
)
def test_a_group_is_written_as_it_is_printed_or_as_on_the_wire(written: str, meant: str) -> None:
    assert subscription_filter(written) == meant

"""The credit: what is out, and what a subscription may still take."""

from dssd.machines.delivery.credit import Credit
from dssd.machines.delivery.fairness import Share
from dssd.machines.delivery.frame_plan import CreditLeft


def test_what_is_taken_is_gone_until_it_comes_back() -> None:
    credit, share = Credit(10, 100), Share()
    credit.take(share, 4, 50)
    assert credit.left(share, contended=False) == CreditLeft(6, 50)
    credit.take(share, -4, -50)
    assert credit.left(share, contended=False) == CreditLeft(10, 100)


def test_it_is_spent_when_either_part_is() -> None:
    for records, size in ((10, 1), (1, 100)):
        credit = Credit(10, 100)
        assert not credit.spent
        credit.take(Share(), records, size)
        assert credit.spent


def test_while_others_wait_a_subscription_that_has_some_takes_half_at_most() -> None:
    credit, share = Credit(10, 100), Share()
    assert credit.left(share, contended=True) == CreditLeft(10, 100)
    credit.take(share, 3, 60)
    assert credit.left(share, contended=True) == CreditLeft(2, -10)

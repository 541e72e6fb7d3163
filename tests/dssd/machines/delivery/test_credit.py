"""The credit: what is out, and what a subscription may still take."""

from hypothesis import given
from hypothesis import strategies as st

from dss_core.limits import CREDIT_BYTES, CREDIT_RECORDS, FRAME_BYTES_MAX
from dssd.machines.delivery.credit import Account, Credit
from dssd.machines.delivery.frame_plan import CreditLeft

PLENTY = 1 << 20


def opened(records: int, size: int, subscriptions: int) -> tuple[Credit, list[Account]]:
    credit = Credit(records, size)
    accounts = [Account() for _ in range(subscriptions)]
    for account in accounts:
        credit.open(account)
    return credit, accounts


def test_what_is_taken_is_gone_until_it_comes_back() -> None:
    credit, [account] = opened(10, 100, 1)
    credit.take(account, 4, 50, again=False)
    assert credit.left(account, again=False) == CreditLeft(6, 50)
    assert (credit.out_records, credit.out_bytes) == (4, 50)
    credit.take(account, -4, -50, again=False)
    assert credit.left(account, again=False) == CreditLeft(10, 100)


def test_each_subscription_has_a_reserve_that_no_other_can_take() -> None:
    credit, [one, other] = opened(40, PLENTY, 2)
    assert credit.left(one, again=False).records == 30
    credit.take(one, 35, 0, again=False)
    assert credit.left(one, again=False).records == -5
    assert credit.left(other, again=False).records == 10, "though one frame went over the credit"
    credit.take(other, 10, 0, again=False)
    assert credit.left(other, again=False).records == 0
    assert credit.left(other, again=True).records > 0


def test_a_reserve_ends_with_the_last_stream_of_its_subscription() -> None:
    credit, [one, other] = opened(40, PLENTY, 2)
    credit.close(other)
    assert credit.left(one, again=False).records == 40


def test_new_records_leave_room_for_refused_ones_while_there_are_any() -> None:
    credit, [account] = opened(80, PLENTY, 1)
    account.resting.ranges = 1
    assert credit.left(account, again=False).records == 70
    credit.take(account, 70, 0, again=False)
    assert credit.left(account, again=True).records == 10
    credit.take(account, 4, 0, again=True)
    assert credit.left(account, again=False).records == 0
    account.resting.ranges = 0
    assert credit.left(account, again=False).records == 6


def test_with_a_credit_of_one_record_a_new_one_goes_and_one_that_comes_again() -> None:
    credit, [account] = opened(1, PLENTY, 1)
    account.resting.ranges = 1
    assert credit.left(account, again=False).records == 1
    credit.take(account, 1, 0, again=False)
    assert credit.left(account, again=False).records == 0
    assert credit.left(account, again=True).records == 1
    credit.take(account, 1, 0, again=True)
    assert credit.left(account, again=True).records == 0


def test_nobody_goes_over_the_credit_once_it_is_exceeded_by_the_largest_frame() -> None:
    credit, [one, other] = opened(CREDIT_RECORDS, CREDIT_BYTES, 2)
    credit.take(one, 1, CREDIT_BYTES + FRAME_BYTES_MAX - 1, again=False)
    assert credit.left(other, again=False).bytes > 0
    credit.take(one, 1, 1, again=False)
    assert credit.left(other, again=False) == CreditLeft(0, 0)
    assert credit.left(other, again=True) == CreditLeft(0, 0)


Takes = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 30), st.booleans(), st.booleans()), max_size=40
)


@given(st.integers(1, 100), st.integers(1, 4), Takes)
def test_whatever_the_others_hold_a_subscription_has_its_share(
    records: int, subscriptions: int, takes: list[tuple[int, int, bool, bool]]
) -> None:
    credit, accounts = opened(records, PLENTY, subscriptions)
    for which, frame, again, resting in takes:
        account = accounts[which % subscriptions]
        account.resting.ranges = int(resting)
        if credit.left(account, again=again).records > 0:
            credit.take(account, frame, 0, again=again)
        for each in accounts:
            new, more = credit.left(each, again=False), credit.left(each, again=True)
            assert more.records >= new.records
            assert more.records > 0 or each.records.again > 0
            share = max(1, records // (2 * subscriptions))
            kept = share // 4 if each.resting.ranges else 0
            if each.records.out < share - kept:
                assert new.records > 0
    for each in accounts:
        credit.take(each, -each.records.again, 0, again=True)
        credit.take(each, -each.records.out, 0, again=False)
        each.resting.ranges = 0
    assert credit.out_records == 0
    share = max(1, records // (2 * subscriptions))
    claimed = sum(each.records.claim for each in accounts[1:])
    assert claimed == share * (subscriptions - 1)
    assert credit.left(accounts[0], again=False).records == max(share, records - claimed)

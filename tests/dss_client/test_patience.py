from dss_client._patience import LOSSES_MAX, Patience
from dss_client.limits import AWAY_S


def test_a_daemon_that_stays_away_is_given_up() -> None:
    patience = Patience()
    assert patience.lasts(1_000, heard_s=0)
    assert patience.lasts(1_000 + AWAY_S - 1, heard_s=0)
    assert not patience.lasts(1_000 + AWAY_S, heard_s=0)


def test_the_time_begins_anew_with_a_loss_behind_which_the_daemon_was_heard() -> None:
    patience = Patience()
    assert patience.lasts(0, heard_s=0)
    assert patience.lasts(AWAY_S - 1, heard_s=0)
    later_s = 3 * AWAY_S
    assert patience.lasts(later_s, heard_s=later_s - 5)
    assert patience.lasts(later_s + AWAY_S - 1, heard_s=later_s - 5)
    assert not patience.lasts(later_s + AWAY_S, heard_s=later_s - 5)


def test_what_the_daemon_is_lost_by_again_and_again_is_given_up() -> None:
    patience = Patience()
    tries = [patience.lasts(second, heard_s=second - 0.5) for second in range(LOSSES_MAX + 1)]
    assert tries == [True] * LOSSES_MAX + [False]

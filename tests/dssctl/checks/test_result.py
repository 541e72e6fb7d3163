"""Results of checks as Nagios and Prometheus read them."""

from dssctl.checks.bounds import AGE, FREE_SHARE, RECORDS, Bounds, Status
from dssctl.checks.result import Measured, Result, nagios, prometheus

BOUNDS = Bounds(RECORDS, 1_000, 50_000)
RESULT = Result(
    "lag",
    (
        Measured("billing@orders/#", 61_204, BOUNDS),
        Measured("o'brien@a=b", 5, BOUNDS),
        Measured("late@x|y", 70_000, BOUNDS),
    ),
)


def test_the_worst_is_told_with_its_bound_and_all_values_behind_the_bar() -> None:
    assert nagios(RESULT) == (
        "CRITICAL: lag: late@x/y 70,000 >= 50,000, and 1 more"
        " | 'billing@orders/#'=61204;1000;50000"
        " 'o''brien@a_b'=5;1000;50000"
        " 'late@x|y'=70000;1000;50000"
    )


def test_prometheus_gets_the_status_and_each_value() -> None:
    assert list(prometheus(RESULT))[2:] == [
        'dss_check_status{check="lag"} 2',
        "# TYPE dss_check_lag_records gauge",
        'dss_check_lag_records{of="billing@orders/#"} 61204',
        'dss_check_lag_records{of="o\'brien@a=b"} 5',
        'dss_check_lag_records{of="late@x|y"} 70000',
    ]


def test_what_must_not_fall_below_a_bound_is_written_as_nagios_has_it() -> None:
    free = Measured("free of /d", 0.28752, Bounds(FREE_SHARE, 0.1, 0.03))
    assert nagios(Result("disk", (free,))) == (
        "OK: disk: free of /d 28.8% | 'free of /d'=28.752%;10:;3:"
    )
    assert list(prometheus(Result("disk", (free,))))[-1] == (
        'dss_check_disk_free_ratio{of="free of /d"} 0.28752'
    )
    age = Measured("g@#", 90_000, Bounds(AGE, 60_000))
    assert nagios(Result("oldest", (age,))).endswith("| 'g@#'=90000ms;60000;")
    assert list(prometheus(Result("oldest", (age,))))[-2:] == [
        "# TYPE dss_check_oldest_seconds gauge",
        'dss_check_oldest_seconds{of="g@#"} 90',
    ]


def test_where_nothing_could_be_asked_the_status_is_unknown() -> None:
    failed = Result("lag", (), "lag: DSS5001: away")
    assert failed.status is Status.UNKNOWN
    assert nagios(failed) == "UNKNOWN: lag: DSS5001: away"


def test_where_there_is_nothing_to_check_all_is_well() -> None:
    assert nagios(Result("lag", ())) == "OK: lag: there is nothing to check"

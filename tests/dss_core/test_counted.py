"""Numbers of things in sentences."""

from dss_core.counted import counted


def test_one_thing_is_named_as_one() -> None:
    assert counted(1, "record") == "1 record"
    assert counted(0, "record") == "0 records"
    assert counted(2_000, "record comes", "records come") == "2,000 records come"

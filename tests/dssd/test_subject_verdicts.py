from dssd.limits import SUBJECT_TABLE_CACHED_BYTES_MAX
from dssd.subject_verdicts import SubjectVerdicts


def test_the_oldest_verdict_leaves_for_a_new_one() -> None:
    kept: SubjectVerdicts[str, int] = SubjectVerdicts(2)
    for number, key in enumerate("abc"):
        kept.keep(key, b"table", number)
    assert dict(kept) == {"b": 1, "c": 2}


def test_verdicts_on_large_tables_are_not_kept() -> None:
    kept: SubjectVerdicts[bytes, bool] = SubjectVerdicts(2)
    fits = bytes(SUBJECT_TABLE_CACHED_BYTES_MAX)
    kept.keep(fits, fits, True)
    kept.keep(fits + b"x", fits + b"x", True)
    assert list(kept) == [fits]

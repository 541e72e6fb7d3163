"""The tables as they are on disk: a change of one fails here."""

from pathlib import Path

import pytest
import sqlite_utils

from dssd.store import schema
from dssd.store.integrity import SEAL, SEQUENCES
from dssd.store.rows import KINDS, Row

RECORDED = Path(__file__).parent / f"schema_{schema.FORMAT}.sql"


def test_the_tables_are_those_recorded_for_this_format() -> None:
    db = sqlite_utils.Database(memory=True)
    made = "\n\n".join(f"{schema.create_sql(db, kind)};" for kind in KINDS)
    db.close()
    # Released formats never change: add a migration and record the new format in a new file.
    assert made + "\n" == RECORDED.read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_every_table_is_strict_ordered_by_its_key_versioned_and_summed(kind: type[Row]) -> None:
    db = sqlite_utils.Database(memory=True)
    db.execute(schema.create_sql(db, kind))
    table = db.table(kind.TABLE)
    assert table.strict
    assert tuple(table.pks) == kind.KEY
    assert "WITHOUT ROWID" in table.schema
    assert [(column.name, column.type, bool(column.notnull)) for column in table.columns[-2:]] == [
        ("version", "INTEGER", True),
        ("checksum", "INTEGER", True),
    ]
    db.close()


def test_table_names_are_distinct() -> None:
    assert len({kind.TABLE for kind in KINDS} | {SEQUENCES, SEAL}) == len(KINDS) + 2

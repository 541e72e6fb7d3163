"""The tables as they are on disk: a change of one fails here."""

import subprocess
import sys

import pytest
import sqlite_utils

from dssd.store import schema
from dssd.store.integrity import SEAL, SEQUENCES
from dssd.store.rows import KINDS, Row
from support.older_store import recorded_tables


def test_the_tables_are_those_recorded_for_this_format() -> None:
    made = {kind.TABLE: f"{schema.create_sql(kind)};" for kind in KINDS}
    # Released formats never change: add a migration, and record the tables that it makes or changes
    # in the file of a new format.
    assert made == recorded_tables(schema.FORMAT)


@pytest.mark.parametrize("kind", KINDS)
def test_every_table_is_strict_ordered_by_its_key_versioned_and_summed(kind: type[Row]) -> None:
    db = sqlite_utils.Database(memory=True)
    db.execute(schema.create_sql(kind))
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


def test_a_start_that_migrates_nothing_loads_no_sqlite_utils() -> None:
    program = (
        "import sqlite3, sys; from dssd.store import schema;"
        "new = sqlite3.connect(':memory:', isolation_level=None);"
        "schema.migrate(new, 0); schema.migrate(new, schema.FORMAT);"
        "sys.exit('sqlite_utils' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

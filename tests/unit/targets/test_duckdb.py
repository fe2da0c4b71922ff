"""DuckDB's types, names, literals and errors."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.ddl.syntax.type_names import INTEGERS
from connector.errors import (
    ConnectorError,
    PreflightError,
    TargetDamaged,
    TargetDiffers,
    TargetUnavailable,
    ValueNotRepresentable,
)
from connector.log.transaction.layout import Column, TableName
from connector.targets.duckdb.catalog_checks import _columns
from connector.targets.duckdb.errors import connector_error
from connector.targets.duckdb.literals import column_literal, literal
from connector.targets.duckdb.names import DuckDbNames, table_name
from connector.targets.duckdb.types import duckdb_type, logged
from connector.targets.names import check_names
from connector.targets.operations import Value
from connector.targets.table import make_table
from connector.targets.types import whole_range
from tests.contract.target_values import VALUES
from tests.support.net import column

BOUNDS = {
    "TINYINT": (-(2**7), 2**7 - 1), "SMALLINT": (-(2**15), 2**15 - 1), "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1), "UTINYINT": (0, 2**8 - 1), "USMALLINT": (0, 2**16 - 1),
    "UINTEGER": (0, 2**32 - 1), "UBIGINT": (0, 2**64 - 1),
}  # fmt: skip
WHOLE = [Column("c", name, unsigned) for name in INTEGERS for unsigned in (False, True)]


@pytest.mark.parametrize("of", WHOLE, ids=[f"{one.type} {'unsigned' if one.unsigned else ''}" for one in WHOLE])
def test_type_of_an_integer_is_the_narrowest_with_all_its_values(of: Column) -> None:
    low, high = whole_range(of)
    having = [kind for kind, (least, most) in BOUNDS.items() if least <= low and high <= most]
    narrowest = min(having, key=lambda kind: BOUNDS[kind][1] - BOUNDS[kind][0])
    span = BOUNDS[duckdb_type(of)][1] - BOUNDS[duckdb_type(of)][0]
    assert duckdb_type(of) in having
    assert span == BOUNDS[narrowest][1] - BOUNDS[narrowest][0]


@pytest.mark.parametrize(
    ("of", "kind"),
    [("decimal(38,38)", "DECIMAL(38,38)"), ("decimal(39,0)", "VARCHAR"), ("decimal(65,30)", "VARCHAR")],
)
def test_decimals_with_more_digits_than_duckdb_has_are_text(of: str, kind: str) -> None:
    assert duckdb_type(Column("c", of)) == kind


@given(st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.binary(),
                 st.text(st.characters(exclude_categories=["Cs"]))))  # fmt: skip
def test_literal_of_a_value_is_the_value(value: Value) -> None:
    ((found,),) = duckdb.execute(f"SELECT {literal(value)}").fetchall()
    assert repr(found) == repr(value)


@pytest.mark.parametrize("kind", [kind for kind in VALUES if not kind.startswith("long")])
def test_literal_of_a_column_is_read_as_the_log_has_it(kind: str) -> None:
    of = column(f"c {kind}")
    for value in VALUES[kind][1]:
        stored = f"SELECT {column_literal(of, value)} AS c"
        ((found, named),) = duckdb.execute(f"SELECT {logged(of, 'c')}, typeof(c) FROM ({stored})").fetchall()
        assert (str(found), named) == (str(value), duckdb_type(of))


def test_names_that_differ_in_the_case_of_ascii_alone_are_refused() -> None:
    for names in (("a", "A"), ("É", "é")):
        tables = [make_table(TableName("s", name), [column("a int")], []) for name in names]
        if names[0].isascii():
            with pytest.raises(ValueNotRepresentable):
                check_names(DuckDbNames(), tables)
        else:
            check_names(DuckDbNames(), tables)


def test_tables_are_named_with_the_catalogue() -> None:
    assert table_name('s"x', TableName("shop", 'o"d')) == '"s""x"."shop"."o""d"'


@pytest.mark.parametrize(("columns", "found"), [("a", ["a"]), ('a, "b c", "d""e"', ["a", "b c", 'd"e'])])
def test_columns_of_an_index_are_read(columns: str, found: list[str]) -> None:
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE t (a INTEGER, "b c" INTEGER, "d""e" INTEGER)')
        connection.execute(f"CREATE UNIQUE INDEX i ON t ({columns})")
        ((text,),) = connection.execute("SELECT expressions FROM duckdb_indexes()").fetchall()
    assert _columns(str(text)) == found


LOCKED = 'IO Error: Could not set lock on file "/t": Conflicting lock is held in /usr/bin/python3 (PID 42). See also …'


@pytest.mark.parametrize(
    ("error", "opening", "kind"),
    [
        (duckdb.IOException("IO Error: No space left on device"), False, TargetUnavailable),
        (duckdb.OutOfMemoryException("as it says"), False, TargetUnavailable),
        (duckdb.TransactionException("Conflict on update!"), False, TargetUnavailable),
        (duckdb.ConversionException("as it says"), False, ValueNotRepresentable),
        (duckdb.OutOfRangeException("as it says"), False, ValueNotRepresentable),
        (duckdb.CatalogException("Table with name t does not exist!"), False, TargetDiffers),
        (duckdb.ConstraintException("Duplicate key"), False, TargetDiffers),
        (duckdb.DependencyException("Cannot alter entry"), False, TargetDiffers),
        (duckdb.FatalException("as it says"), False, TargetDamaged),
        (duckdb.SerializationException("as it says"), True, TargetDamaged),
        (duckdb.IOException(LOCKED), True, TargetUnavailable),
        (duckdb.IOException("IO Error: Cannot open file"), True, PreflightError),
    ],
)
def test_errors_are_translated(error: duckdb.Error, opening: bool, kind: type[ConnectorError]) -> None:
    assert type(connector_error(error, Path("t") if opening else None)) is kind


def test_error_of_a_locked_file_names_its_process() -> None:
    error = connector_error(duckdb.IOException(LOCKED), Path("t"))
    assert (error.where["pid"], error.retry) == ("42", True)
    assert "/usr/bin/python3, process 42" in error.message
    assert "end process 42" in error.hint

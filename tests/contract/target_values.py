"""The contract of every target for values: each type is stored and read back exactly."""

from __future__ import annotations

import pytest

from tests.contract.target_suite import Applier, Place
from tests.support.net import Row, layout, net

DIGITS = "9" * 65
VALUES: dict[str, tuple[str, list[int | float | str | bytes]]] = {
    "tinyint": ("TINYINT", [-128, 127]),
    "tinyint unsigned": ("TINYINT UNSIGNED", [0, 255]),
    "smallint": ("SMALLINT", [-32768, 32767]),
    "smallint unsigned": ("SMALLINT UNSIGNED", [65535]),
    "mediumint": ("MEDIUMINT", [-(2**23), 2**23 - 1]),
    "mediumint unsigned": ("MEDIUMINT UNSIGNED", [2**24 - 1]),
    "int": ("INT", [-(2**31), 2**31 - 1]),
    "int unsigned": ("INTEGER UNSIGNED", [2**32 - 1]),
    "bigint": ("BIGINT", [-(2**63), 2**63 - 1, 0]),
    "bigint unsigned": ("BIGINT UNSIGNED", [0, 2**63 - 1, str(2**63), str(2**64 - 1)]),
    "float": ("FLOAT", [0.10000000149011612, 3.4028234663852886e38, 1.401298464324817e-45, -0.0, 16777216.0]),
    "double": ("DOUBLE", [0.1, 1.7976931348623157e308, 5e-324, -0.0, 0.0, 1.0, 123456789012345680.0]),
    "decimal(65,30)": ("DECIMAL(65,30)", [f"{DIGITS[:35]}.{DIGITS[:30]}", f"-0.{'0' * 29}1", f"0.{'0' * 30}"]),
    "decimal(65,0)": ("DECIMAL(65)", [DIGITS, "-" + DIGITS, "0", "10000", "100000000"]),
    "decimal(10,2)": ("DECIMAL(10,2)", ["1.10", "-99999999.99", "0.00", "0.05", "12345.60", "10000.00"]),
    "decimal(5,5)": ("DECIMAL(5,5)", ["0.00001", "-0.99999", "0.10000"]),
    "bit(1)": ("BIT", [b"\0", b"\1"]),
    "bit(17)": ("BIT(17)", [b"\1\xff\xfe", b"\0\0\1"]),
    "bit(64)": ("BIT(64)", [b"\xff" * 8]),
    "year": ("YEAR", [0, 1901, 2155]),
    "date": ("DATE", ["2024-02-29", "0001-01-01", "9999-12-31", "1969-12-31", "2000-03-01", "1900-02-28"]),
    "time": ("TIME", ["838:59:59", "-838:59:59", "00:00:00", "-00:00:01", "24:00:00"]),
    "time(6)": ("TIME(6)", ["838:59:59.000000", "-838:59:58.999999", "00:00:00.000001", "-00:00:00.000001"]),
    "time(3)": ("TIME(3)", ["12:34:56.789"]),
    "datetime": ("DATETIME", ["2024-02-29 23:59:59", "0001-01-01 00:00:00", "9999-12-31 23:59:59"]),
    "datetime(6)": ("DATETIME(6)", ["1969-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999"]),
    "datetime(1)": ("DATETIME(1)", ["2000-01-01 00:00:00.0", "1999-12-31 23:59:59.9"]),
    "timestamp": ("TIMESTAMP NULL", ["1970-01-01 00:00:01", "2038-01-19 03:14:07", "2024-03-31 02:30:00"]),
    "timestamp(6)": ("TIMESTAMP(6) NULL", ["2038-01-19 03:14:07.999999"]),
    "char(10)": ("CHAR(10)", ["", "ünï", "日本語", "😀", "\\N", "\t\n\r\b\\"]),
    "varchar(100)": ("VARCHAR(100)", ["", " trailing ", "a" * 100, "'\"`;--", "\ufeff\u202e"]),
    "longtext": ("LONGTEXT", ["", "x" * 3_000_000]),
    "binary(4)": ("BINARY(4)", [b"\0\0\0\0", b"ab\0\0"]),
    "varbinary(300)": ("VARBINARY(300)", [b"", bytes(range(256))]),
    "longblob": ("LONGBLOB", [b"", b"\0\xff" * 1_500_000]),
    "enum('a','b,c','')": ("ENUM('a','b,c','')", ["a", "b,c", ""]),
    "set('x','y')": ("SET('x','y')", ["", "x", "x,y"]),
    "json": (
        "JSON",
        ['{"a": 1, "b": [1, 2.50]}', "null", '"\\u0001"', "12345678901234567890.123", "[]", '{"b": 1, "b2": 2}'],
    ),
    "geometry": ("POINT", [b"\0\0\0\0\1\1\0\0\0" + b"\0" * 16]),
    "vector(2)": ("VECTOR(2)", [b"\0\0\x80\x3f\0\0\0\x40"]),
}


def values_of(place: Place, kind: str) -> tuple[str, list[int | float | str | bytes]]:
    """The definition of a column, and values for it."""
    if kind.partition("(")[0] in place.lacks:
        pytest.skip(f"the target has no {kind}")
    return VALUES[kind]


@pytest.mark.parametrize("kind", VALUES)
def test_every_value_arrives_as_it_is(place: Place, kind: str) -> None:
    applier = Applier(place.open())
    definition, values = values_of(place, kind)
    applier.sql("CREATE DATABASE shop", f"CREATE TABLE vals (id INT PRIMARY KEY, v {definition})")
    table = layout("shop.vals", ["id int", f"v {kind}"], ["id"])
    rows: list[Row] = [(n, item) for n, item in enumerate([*values, None])]
    applier.rows(net(table, inserts=rows))
    assert repr(place.read(table)) == repr(rows)
    turned: list[Row] = [(n, item) for n, item in enumerate([None, *reversed(values)])]
    applier.rows(net(table, updates=turned))
    assert repr(place.read(table)) == repr(turned)


@pytest.mark.parametrize(
    "kind", [kind for kind in VALUES if not kind.startswith(("json", "geometry", "vector", "long"))]
)
def test_every_value_can_be_a_key(place: Place, kind: str) -> None:
    applier = Applier(place.open())
    definition, values = values_of(place, kind)
    definition = definition.removesuffix(" NULL")
    applier.sql("CREATE DATABASE shop", f"CREATE TABLE vals (v {definition}, n INT, PRIMARY KEY (v))")
    table = layout("shop.vals", [f"v {kind}", "n int"], ["v"])
    keys = [item for n, item in enumerate(values) if item not in values[:n]]
    applier.rows(net(table, inserts=[(item, 1) for item in keys]))
    applier.rows(net(table, updates=[(item, 2) for item in keys[1:]], deletes=[(keys[0], 1)]))
    found = place.read(table)
    assert found is not None
    assert sorted(map(repr, found)) == sorted(repr((item, 2)) for item in keys[1:])


@pytest.mark.parametrize("kind", VALUES)
def test_every_value_is_found_in_a_keyless_table(place: Place, kind: str) -> None:
    applier = Applier(place.open())
    definition, values = values_of(place, kind)
    applier.sql("CREATE DATABASE shop", f"CREATE TABLE vals (v {definition}, n INT)")
    table = layout("shop.vals", [f"v {kind}", "n int"])
    applier.rows(net(table, inserts=[(item, 1) for item in [*values, None]] * 2))
    applier.rows(net(table, deletes=[(item, 1) for item in [*values, None]]))
    found = place.read(table)
    assert found is not None
    assert sorted(map(repr, found)) == sorted(repr((item, 1)) for item in [*values, None])
